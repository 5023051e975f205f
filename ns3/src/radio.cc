// SPDX-License-Identifier: GPL-2.0-only

#include "radio.h"

#include "ns3/epc-pgw-application.h"
#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/wifi-module.h"

#include <stdexcept>

using namespace ns3;

namespace tcpsbed
{

namespace
{

// What UDP over a point-to-point device has below IPv4.
constexpr uint32_t kLinkBytes = 2;

// The two directions of a radio link.
struct Pair
{
    size_t up;
    size_t down;
    const Json* radio;
    uint32_t mobile;
    uint32_t fixed;
};

std::vector<Pair>
PairsOf(const Json& links, const std::string& kind)
{
    std::vector<Pair> pairs;
    for (size_t up = 0; up < links.List().size(); up++)
    {
        const Json& radio = links[up]["radio"];
        if (radio["kind"].Text() != kind || !radio["up"].Bool())
        {
            continue;
        }
        const size_t down = radio["other"].Whole();
        pairs.push_back({up,
                         down,
                         &radio,
                         static_cast<uint32_t>(links[up]["from"].Whole()),
                         static_cast<uint32_t>(links[up]["to"].Whole())});
    }
    return pairs;
}

void
Stand(const Ptr<Node>& node, double x)
{
    if (!node->GetObject<MobilityModel>())
    {
        MobilityHelper place;
        place.SetMobilityModel("ns3::ConstantPositionMobilityModel");
        place.Install(node);
    }
    node->GetObject<MobilityModel>()->SetPosition(Vector(x, 0, 0));
}

Ptr<Ipv4StaticRouting>
TableOf(const Ptr<Node>& node)
{
    Ipv4StaticRoutingHelper helper;
    return helper.GetStaticRouting(node->GetObject<Ipv4>());
}

// LTE: evolved packet core, one base station, its subscribers.
class Lte : public Radio
{
  public:
    Lte(const std::vector<Pair>& pairs, const NodeContainer& vertices, std::vector<Way>& ways)
        : m_lte(CreateObject<LteHelper>()),
          m_epc(CreateObject<PointToPointEpcHelper>())
    {
        const Json& settings = *pairs.front().radio;
        Config::SetDefault("ns3::LteEnbRrc::SrsPeriodicity", UintegerValue(settings["srs_periodicity"].Whole()));
        m_lte->SetEpcHelper(m_epc);
        m_lte->SetSchedulerType("ns3::" + settings["scheduler"].Text() + "FfMacScheduler");
        m_lte->SetEnbDeviceAttribute("DlBandwidth", UintegerValue(settings["resource_blocks"].Whole()));
        m_lte->SetEnbDeviceAttribute("UlBandwidth", UintegerValue(settings["resource_blocks"].Whole()));
        JoinCore(vertices.Get(pairs.front().fixed), ways, pairs);
        NodeContainer station(CreateObject<Node>());
        Stand(station.Get(0), 0);
        m_base = m_lte->InstallEnbDevice(station);
        for (const Pair& pair : pairs)
        {
            Subscribe(pair, vertices.Get(pair.mobile), ways);
        }
    }

    void Route(size_t link, Ipv4Address known) override
    {
        Ptr<Ipv4StaticRouting> gateway = TableOf(m_epc->GetPgwNode());
        const auto mobile = m_imsi.find(link);
        if (mobile == m_imsi.end())
        {
            gateway->AddHostRouteTo(known, m_core, m_coreInterface);
            return;
        }
        // The gateway knows a mobile by its own address only; what lies behind it has to be told.
        gateway->AddHostRouteTo(known, m_tunnelInterface);
        m_tunnel->SetUeAddress(mobile->second, known);
    }

  private:
    // A wire without limits between the gateway and the vertex behind it.
    void JoinCore(const Ptr<Node>& core, std::vector<Way>& ways, const std::vector<Pair>& pairs)
    {
        Ptr<Node> gateway = m_epc->GetPgwNode();
        PointToPointHelper wire;
        wire.DisableFlowControl();
        wire.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
        wire.SetChannelAttribute("Delay", StringValue("0ms"));
        NetDeviceContainer ends = wire.Install(gateway, core);
        Ipv4AddressHelper addresses("1.0.0.0", "255.255.255.252");
        Ipv4InterfaceContainer given = addresses.Assign(ends);
        m_core = given.GetAddress(1);
        m_coreInterface = gateway->GetObject<Ipv4>()->GetInterfaceForDevice(ends.Get(0));
        const auto out = static_cast<uint32_t>(core->GetObject<Ipv4>()->GetInterfaceForDevice(ends.Get(1)));
        const Way way{given.GetAddress(0), out};
        for (const Pair& pair : pairs)
        {
            ways[pair.down] = way;
            Count(pair.down, core, way.interface);
        }
        // The tunnel is the interface with the address that mobiles have as their gateway.
        m_tunnelInterface = gateway->GetObject<Ipv4>()->GetInterfaceForAddress(m_epc->GetUeDefaultGatewayAddress());
        for (uint32_t i = 0; i < gateway->GetNApplications() && !m_tunnel; i++)
        {
            m_tunnel = DynamicCast<EpcPgwApplication>(gateway->GetApplication(i));
        }
        if (!m_tunnel)
        {
            throw std::runtime_error("this ns-3 has no EpcPgwApplication at its gateway");
        }
    }

    void Subscribe(const Pair& pair, const Ptr<Node>& mobile, std::vector<Way>& ways)
    {
        Stand(mobile, (*pair.radio)["distance_m"].Number());
        NetDeviceContainer device = m_lte->InstallUeDevice(NodeContainer(mobile));
        m_epc->AssignUeIpv4Address(device);
        const uint32_t interface = mobile->GetObject<Ipv4>()->GetInterfaceForDevice(device.Get(0));
        ways[pair.up] = {m_epc->GetUeDefaultGatewayAddress(), interface};
        Count(pair.up, mobile, interface);
        m_lte->Attach(device.Get(0), m_base.Get(0));
        m_imsi[pair.down] = device.Get(0)->GetObject<LteUeNetDevice>()->GetImsi();
    }

    Ptr<LteHelper> m_lte;
    Ptr<PointToPointEpcHelper> m_epc;
    NetDeviceContainer m_base;
    Ipv4Address m_core;
    uint32_t m_coreInterface{0};
    uint32_t m_tunnelInterface{0};
    Ptr<EpcPgwApplication> m_tunnel;
    std::map<size_t, uint64_t> m_imsi;
};

// Wi-Fi: an access point at each vertex that radio links lead to, and its stations.
class Wifi : public Radio
{
  public:
    Wifi(const std::vector<Pair>& pairs, const NodeContainer& vertices, std::vector<Way>& ways)
    {
        std::map<uint32_t, std::vector<Pair>> cells;
        for (const Pair& pair : pairs)
        {
            cells[pair.fixed].push_back(pair);
        }
        for (const auto& [point, members] : cells)
        {
            BuildCell(members, vertices, ways);
        }
    }

    void Route(size_t, Ipv4Address) override
    {
    }

  private:
    void BuildCell(const std::vector<Pair>& members, const NodeContainer& vertices, std::vector<Way>& ways)
    {
        YansWifiPhyHelper phy;
        phy.SetChannel(YansWifiChannelHelper::Default().Create());
        WifiHelper wifi;
        wifi.SetStandard(WIFI_STANDARD_80211n);
        wifi.SetRemoteStationManager("ns3::IdealWifiManager");
        const std::string name = "cell" + std::to_string(m_cells);
        WifiMacHelper mac;
        mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(Ssid(name)));
        Ptr<Node> point = vertices.Get(members.front().fixed);
        NetDeviceContainer devices = wifi.Install(phy, mac, point);
        Stand(point, 0);
        mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(Ssid(name)));
        for (const Pair& pair : members)
        {
            devices.Add(wifi.Install(phy, mac, vertices.Get(pair.mobile)));
            Stand(vertices.Get(pair.mobile), (*pair.radio)["distance_m"].Number());
        }
        const std::string base = "172.20." + std::to_string(m_cells++) + ".0";
        Ipv4AddressHelper addresses(base.c_str(), "255.255.255.0");
        Ipv4InterfaceContainer given = addresses.Assign(devices);
        NeighborCacheHelper().PopulateNeighborCache(given);
        const uint32_t down = point->GetObject<Ipv4>()->GetInterfaceForDevice(devices.Get(0));
        for (size_t i = 0; i < members.size(); i++)
        {
            Ptr<Node> station = vertices.Get(members[i].mobile);
            const uint32_t up = station->GetObject<Ipv4>()->GetInterfaceForDevice(devices.Get(i + 1));
            ways[members[i].up] = {given.GetAddress(0), up};
            ways[members[i].down] = {given.GetAddress(i + 1), down};
            Count(members[i].up, station, up);
        }
        Count(members.front().down, point, down);
    }

    uint32_t m_cells{0};
};

} // namespace

void
Radio::Count(size_t link, const Ptr<Node>& node, uint32_t interface)
{
    std::pair<uint64_t, uint64_t>& carried = m_carried[link];
    node->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext(
        "Tx",
        Callback<void, Ptr<const Packet>, Ptr<Ipv4>, uint32_t>(
            [&carried, interface](Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t out) {
                if (out == interface)
                {
                    carried.first++;
                    carried.second += packet->GetSize() + kLinkBytes;
                }
            }));
}

std::unique_ptr<Radio>
Radio::Build(const Json& links, const NodeContainer& vertices, std::vector<Way>& ways)
{
    const std::vector<Pair> lte = PairsOf(links, "lte");
    const std::vector<Pair> wifi = PairsOf(links, "wifi");
    if (!lte.empty() && !wifi.empty())
    {
        throw std::runtime_error("LTE and Wi-Fi in one scenario");
    }
    if (!lte.empty())
    {
        return std::make_unique<Lte>(lte, vertices, ways);
    }
    if (!wifi.empty())
    {
        return std::make_unique<Wifi>(wifi, vertices, ways);
    }
    return nullptr;
}

} // namespace tcpsbed
