// SPDX-License-Identifier: GPL-2.0-only
//
// 5G-LENA, the module nr that users compile into ns-3 themselves: one base station (gNB) with one bandwidth part, and its
// mobiles, before ns-3's packet core. Written for its versions 2.3 to 3.1, which go with ns-3.37 to 3.42.

#include "cellular.h"

#include "ns3/cc-bwp-helper.h"
#include "ns3/core-module.h"
#include "ns3/ideal-beamforming-algorithm.h"
#include "ns3/ideal-beamforming-helper.h"
#include "ns3/isotropic-antenna-model.h"
#include "ns3/nr-gnb-net-device.h"
#include "ns3/nr-gnb-phy.h"
#include "ns3/nr-helper.h"
#include "ns3/nr-point-to-point-epc-helper.h"
#include "ns3/nr-ue-net-device.h"

using namespace ns3;

namespace tcpsbed
{

namespace
{

// Heights that the model of a street canyon is made for (3GPP TR 38.901, table 7.4.1-1).
constexpr double kStationM = 10;
constexpr double kMobileM = 1.5;

// "DDDSU" as the module writes it: "DL|DL|DL|S|UL|".
std::string
SlotsOf(const std::string& pattern)
{
    std::string slots;
    for (const char letter : pattern)
    {
        slots += letter;
        slots += letter == 'D' || letter == 'U' ? "L|" : "|";
    }
    return slots;
}

class Nr : public Cellular
{
  public:
    Nr(const std::vector<Pair>& pairs, const NodeContainer& vertices, std::vector<Way>& ways)
        : Cellular(CreateObject<NrPointToPointEpcHelper>(), pairs, vertices, ways),
          m_nr(CreateObject<NrHelper>())
    {
        const Json& settings = *pairs.front().radio;
        Set(settings);
        const BandwidthPartInfoPtrVector parts = Band(settings);
        const Ptr<NetDevice> base = Build(settings, parts);
        for (const Pair& pair : pairs)
        {
            const Ptr<Node> mobile = vertices.Get(pair.mobile);
            Stand(mobile, Vector((*pair.radio)["distance_m"].Number(), 0, kMobileM));
            const Ptr<NetDevice> device = m_nr->InstallUeDevice(NodeContainer(mobile), parts).Get(0);
            const Ptr<NrUeNetDevice> user = DynamicCast<NrUeNetDevice>(device);
            user->UpdateConfig();
            Subscribe(pair, mobile, device, user->GetImsi(), ways);
            m_nr->AttachToEnb(device, base);
        }
    }

  private:
    // What holds for all devices.
    void Set(const Json& settings)
    {
        Ptr<IdealBeamformingHelper> beams = CreateObject<IdealBeamformingHelper>();
        beams->SetAttribute("BeamformingMethod", TypeIdValue(DirectPathBeamforming::GetTypeId()));
        m_nr->SetBeamformingHelper(beams);
        m_nr->SetEpcHelper(m_core);
        m_nr->SetSchedulerTypeId(TypeId::LookupByName("ns3::NrMacScheduler" + settings["scheduler"].Text()));
        m_nr->SetSchedulerAttribute("EnableHarqReTx", BooleanValue(settings["harq"].Bool()));
        m_nr->SetUeAntennaAttribute("NumRows", UintegerValue(2));
        m_nr->SetUeAntennaAttribute("NumColumns", UintegerValue(4));
        m_nr->SetUeAntennaAttribute("AntennaElement", PointerValue(CreateObject<IsotropicAntennaModel>()));
        m_nr->SetGnbAntennaAttribute("NumRows", UintegerValue(4));
        m_nr->SetGnbAntennaAttribute("NumColumns", UintegerValue(8));
        m_nr->SetGnbAntennaAttribute("AntennaElement", PointerValue(CreateObject<IsotropicAntennaModel>()));
    }

    // One carrier with one bandwidth part, in a street with a line of sight, which stays as it is drawn.
    BandwidthPartInfoPtrVector Band(const Json& settings)
    {
        Config::SetDefault("ns3::ThreeGppChannelModel::UpdatePeriod", TimeValue(Seconds(0)));
        m_nr->SetChannelConditionModelAttribute("UpdatePeriod", TimeValue(Seconds(0)));
        m_nr->SetPathlossAttribute("ShadowingEnabled", BooleanValue(false));
        const CcBwpCreator::SimpleOperationBandConf conf(settings["carrier_ghz"].Number() * 1e9,
                                                         settings["bandwidth_mhz"].Number() * 1e6,
                                                         1,
                                                         BandwidthPartInfo::UMi_StreetCanyon_LoS);
        m_band = CcBwpCreator().CreateOperationBandContiguousCc(conf);
        m_nr->InitializeOperationBand(&m_band);
        return CcBwpCreator::GetAllBwps({m_band});
    }

    Ptr<NetDevice> Build(const Json& settings, const BandwidthPartInfoPtrVector& parts)
    {
        NodeContainer station(CreateObject<Node>());
        Stand(station.Get(0), Vector(0, 0, kStationM));
        const Ptr<NetDevice> base = m_nr->InstallGnbDevice(station, parts).Get(0);
        const Ptr<NrGnbPhy> phy = NrHelper::GetGnbPhy(base, 0);
        phy->SetAttribute("Numerology", UintegerValue(settings["numerology"].Whole()));
        phy->SetAttribute("Pattern", StringValue(SlotsOf(settings["pattern"].Text())));
        DynamicCast<NrGnbNetDevice>(base)->UpdateConfig();
        return base;
    }

    Ptr<NrHelper> m_nr;
    OperationBandInfo m_band;
};

} // namespace

std::unique_ptr<Radio>
MakeNr(const std::vector<Pair>& pairs, const NodeContainer& vertices, std::vector<Way>& ways)
{
    return std::make_unique<Nr>(pairs, vertices, ways);
}

} // namespace tcpsbed
