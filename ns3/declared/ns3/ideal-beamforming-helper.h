// SPDX-License-Identifier: GPL-2.0-only

#ifndef TCPSBED_DECLARED_IDEAL_BEAMFORMING_HELPER
#define TCPSBED_DECLARED_IDEAL_BEAMFORMING_HELPER

#include "ns3/object.h"

namespace ns3
{

class BeamformingHelperBase : public Object
{
};

class IdealBeamformingHelper : public BeamformingHelperBase
{
  public:
    static TypeId GetTypeId();
};

} // namespace ns3

#endif
