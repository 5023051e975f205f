// SPDX-License-Identifier: GPL-2.0-only

#ifndef TCPSBED_DECLARED_NR_GNB_NET_DEVICE
#define TCPSBED_DECLARED_NR_GNB_NET_DEVICE

#include "ns3/net-device.h"

namespace ns3
{

class NrGnbNetDevice : public NetDevice
{
  public:
    void UpdateConfig();
};

} // namespace ns3

#endif
