// SPDX-License-Identifier: GPL-2.0-only
//
// Wi-Fi of ns-3: an access point at each vertex that radio links lead to, and its stations.

#include "radio.h"

#include "ns3/wifi-module.h"

using namespace ns3;

namespace tcpsbed
{

namespace
{

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
        Stand(point, Vector());
        mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(Ssid(name)));
        for (const Pair& pair : members)
        {
            devices.Add(wifi.Install(phy, mac, vertices.Get(pair.mobile)));
            Stand(vertices.Get(pair.mobile), Vector((*pair.radio)["distance_m"].Number(), 0, 0));
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

std::unique_ptr<Radio>
MakeWifi(const std::vector<Pair>& pairs, const NodeContainer& vertices, std::vector<Way>& ways)
{
    return std::make_unique<Wifi>(pairs, vertices, ways);
}

} // namespace tcpsbed
