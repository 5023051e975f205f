// SPDX-License-Identifier: GPL-2.0-only

#ifndef TCPSBED_DECLARED_NR_UE_NET_DEVICE
#define TCPSBED_DECLARED_NR_UE_NET_DEVICE

#include "ns3/net-device.h"

namespace ns3
{

class NrUeNetDevice : public NetDevice
{
  public:
    void UpdateConfig();
    uint64_t GetImsi() const;
};

} // namespace ns3

#endif
