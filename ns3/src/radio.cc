// SPDX-License-Identifier: GPL-2.0-only

#include "radio.h"

#include "ns3/mobility-module.h"

#include <stdexcept>

using namespace ns3;

namespace tcpsbed
{

namespace
{

// What UDP over a point-to-point device has below IPv4.
constexpr uint32_t kLinkBytes = 2;

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

} // namespace

#ifndef TCPSBED_NR
std::unique_ptr<Radio>
MakeNr(const std::vector<Pair>&, const NodeContainer&, std::vector<Way>&)
{
    throw std::runtime_error("the ns-3 that this program was compiled against has no 5G-LENA (module nr)");
}
#endif

void
Stand(const Ptr<Node>& node, const Vector& place)
{
    if (!node->GetObject<MobilityModel>())
    {
        MobilityHelper helper;
        helper.SetMobilityModel("ns3::ConstantPositionMobilityModel");
        helper.Install(node);
    }
    node->GetObject<MobilityModel>()->SetPosition(place);
}

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
    using Make = std::unique_ptr<Radio> (*)(const std::vector<Pair>&, const NodeContainer&, std::vector<Way>&);
    const std::map<std::string, Make> kinds{{"lte", MakeLte}, {"nr", MakeNr}, {"wifi", MakeWifi}};
    std::unique_ptr<Radio> radio;
    for (const auto& [kind, make] : kinds)
    {
        const std::vector<Pair> pairs = PairsOf(links, kind);
        if (pairs.empty())
        {
            continue;
        }
        if (radio)
        {
            throw std::runtime_error("two kinds of radio in one scenario");
        }
        radio = make(pairs, vertices, ways);
    }
    return radio;
}

} // namespace tcpsbed
