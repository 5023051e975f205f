// SPDX-License-Identifier: GPL-2.0-only

#ifndef TCPSBED_DECLARED_NR_GNB_PHY
#define TCPSBED_DECLARED_NR_GNB_PHY

#include "ns3/object.h"

namespace ns3
{

class NrGnbPhy : public Object
{
};

} // namespace ns3

#endif
