// SPDX-License-Identifier: GPL-2.0-only

#ifndef TCPSBED_DECLARED_NR_HELPER
#define TCPSBED_DECLARED_NR_HELPER

#include "ns3/cc-bwp-helper.h"
#include "ns3/ideal-beamforming-helper.h"
#include "ns3/net-device-container.h"
#include "ns3/node-container.h"

namespace ns3
{

class EpcHelper;
class NrGnbPhy;

class NrHelper : public Object
{
  public:
    NrHelper();
    static TypeId GetTypeId();

    NetDeviceContainer InstallUeDevice(const NodeContainer& c,
                                       const std::vector<std::reference_wrapper<BandwidthPartInfoPtr>>& allBwps);
    NetDeviceContainer InstallGnbDevice(const NodeContainer& c,
                                        const std::vector<std::reference_wrapper<BandwidthPartInfoPtr>> allBwps);
    static Ptr<NrGnbPhy> GetGnbPhy(const Ptr<NetDevice>& gnbDevice, uint32_t bwpIndex);
    void AttachToEnb(const Ptr<NetDevice>& ueDevice, const Ptr<NetDevice>& gnbDevice);
    void SetEpcHelper(Ptr<EpcHelper> epcHelper);
    void SetBeamformingHelper(Ptr<BeamformingHelperBase> beamformingHelper);

    enum OperationBandFlags : uint8_t
    {
        INIT_PROPAGATION = 0x01,
        INIT_FADING = 0x02,
        INIT_CHANNEL = 0x04
    };

    void InitializeOperationBand(OperationBandInfo* band,
                                 uint8_t flags = INIT_PROPAGATION | INIT_FADING | INIT_CHANNEL);
    void SetSchedulerTypeId(const TypeId& typeId);
    void SetSchedulerAttribute(const std::string& n, const AttributeValue& v);
    void SetUeAntennaAttribute(const std::string& n, const AttributeValue& v);
    void SetGnbAntennaAttribute(const std::string& n, const AttributeValue& v);
    void SetChannelConditionModelAttribute(const std::string& n, const AttributeValue& v);
    void SetPathlossAttribute(const std::string& n, const AttributeValue& v);
};

} // namespace ns3

#endif
