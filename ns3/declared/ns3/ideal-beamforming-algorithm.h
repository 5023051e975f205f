// SPDX-License-Identifier: GPL-2.0-only

#ifndef TCPSBED_DECLARED_IDEAL_BEAMFORMING_ALGORITHM
#define TCPSBED_DECLARED_IDEAL_BEAMFORMING_ALGORITHM

#include "ns3/object.h"

namespace ns3
{

class DirectPathBeamforming : public Object
{
  public:
    static TypeId GetTypeId();
};

} // namespace ns3

#endif
