// SPDX-License-Identifier: GPL-2.0-only

#ifndef TCPSBED_DECLARED_NR_POINT_TO_POINT_EPC_HELPER
#define TCPSBED_DECLARED_NR_POINT_TO_POINT_EPC_HELPER

#include "ns3/point-to-point-epc-helper.h"

namespace ns3
{

class NrPointToPointEpcHelper : public PointToPointEpcHelper
{
  public:
    NrPointToPointEpcHelper();
    static TypeId GetTypeId();
};

} // namespace ns3

#endif
