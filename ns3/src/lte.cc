// SPDX-License-Identifier: GPL-2.0-only
//
// LTE of ns-3: one base station and its subscribers before the evolved packet core.

#include "cellular.h"

#include "ns3/core-module.h"
#include "ns3/lte-module.h"

using namespace ns3;

namespace tcpsbed
{

namespace
{

class Lte : public Cellular
{
  public:
    Lte(const std::vector<Pair>& pairs, const NodeContainer& vertices, std::vector<Way>& ways)
        : Cellular(CreateObject<PointToPointEpcHelper>(), pairs, vertices, ways),
          m_lte(CreateObject<LteHelper>())
    {
        const Json& settings = *pairs.front().radio;
        Config::SetDefault("ns3::LteEnbRrc::SrsPeriodicity", UintegerValue(settings["srs_periodicity"].Whole()));
        m_lte->SetEpcHelper(m_core);
        m_lte->SetSchedulerType("ns3::" + settings["scheduler"].Text() + "FfMacScheduler");
        m_lte->SetEnbDeviceAttribute("DlBandwidth", UintegerValue(settings["resource_blocks"].Whole()));
        m_lte->SetEnbDeviceAttribute("UlBandwidth", UintegerValue(settings["resource_blocks"].Whole()));
        NodeContainer station(CreateObject<Node>());
        Stand(station.Get(0), Vector());
        const Ptr<NetDevice> base = m_lte->InstallEnbDevice(station).Get(0);
        for (const Pair& pair : pairs)
        {
            const Ptr<Node> mobile = vertices.Get(pair.mobile);
            Stand(mobile, Vector((*pair.radio)["distance_m"].Number(), 0, 0));
            const Ptr<NetDevice> device = m_lte->InstallUeDevice(NodeContainer(mobile)).Get(0);
            Subscribe(pair, mobile, device, DynamicCast<LteUeNetDevice>(device)->GetImsi(), ways);
            m_lte->Attach(device, base);
        }
    }

  private:
    Ptr<LteHelper> m_lte;
};

} // namespace

std::unique_ptr<Radio>
MakeLte(const std::vector<Pair>& pairs, const NodeContainer& vertices, std::vector<Way>& ways)
{
    return std::make_unique<Lte>(pairs, vertices, ways);
}

} // namespace tcpsbed
