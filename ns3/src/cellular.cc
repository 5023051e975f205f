// SPDX-License-Identifier: GPL-2.0-only

#include "cellular.h"

#include "ns3/core-module.h"

#include <stdexcept>

using namespace ns3;

namespace tcpsbed
{

Cellular::Cellular(const Ptr<PointToPointEpcHelper>& core,
                   const std::vector<Pair>& pairs,
                   const NodeContainer& vertices,
                   std::vector<Way>& ways)
    : m_core(core)
{
    JoinVertex(vertices.Get(pairs.front().fixed), pairs, ways);
}

void
Cellular::Route(size_t link, Ipv4Address known)
{
    Ptr<Ipv4StaticRouting> gateway =
        Ipv4StaticRoutingHelper().GetStaticRouting(m_core->GetPgwNode()->GetObject<Ipv4>());
    const auto mobile = m_imsi.find(link);
    if (mobile == m_imsi.end())
    {
        gateway->AddHostRouteTo(known, m_behind, m_behindInterface);
        return;
    }
    // The gateway knows a mobile by its own address only; what lies behind it has to be told.
    gateway->AddHostRouteTo(known, m_tunnelInterface);
    m_tunnel->SetUeAddress(mobile->second, known);
}

// A wire without limits between the gateway and the vertex behind it.
void
Cellular::JoinVertex(const Ptr<Node>& vertex, const std::vector<Pair>& pairs, std::vector<Way>& ways)
{
    Ptr<Node> gateway = m_core->GetPgwNode();
    PointToPointHelper wire;
    wire.DisableFlowControl();
    wire.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    wire.SetChannelAttribute("Delay", StringValue("0ms"));
    NetDeviceContainer ends = wire.Install(gateway, vertex);
    Ipv4AddressHelper addresses("1.0.0.0", "255.255.255.252");
    Ipv4InterfaceContainer given = addresses.Assign(ends);
    m_behind = given.GetAddress(1);
    m_behindInterface = gateway->GetObject<Ipv4>()->GetInterfaceForDevice(ends.Get(0));
    const auto out = static_cast<uint32_t>(vertex->GetObject<Ipv4>()->GetInterfaceForDevice(ends.Get(1)));
    const Way way{given.GetAddress(0), out};
    for (const Pair& pair : pairs)
    {
        ways[pair.down] = way;
        Count(pair.down, vertex, way.interface);
    }
    // The tunnel is the interface with the address that mobiles have as their gateway.
    m_tunnelInterface = gateway->GetObject<Ipv4>()->GetInterfaceForAddress(m_core->GetUeDefaultGatewayAddress());
    for (uint32_t i = 0; i < gateway->GetNApplications() && !m_tunnel; i++)
    {
        m_tunnel = DynamicCast<EpcPgwApplication>(gateway->GetApplication(i));
    }
    if (!m_tunnel)
    {
        throw std::runtime_error("this ns-3 has no EpcPgwApplication at its gateway");
    }
}

void
Cellular::Subscribe(const Pair& pair,
                    const Ptr<Node>& mobile,
                    const Ptr<NetDevice>& device,
                    uint64_t imsi,
                    std::vector<Way>& ways)
{
    m_core->AssignUeIpv4Address(NetDeviceContainer(device));
    const uint32_t interface = mobile->GetObject<Ipv4>()->GetInterfaceForDevice(device);
    ways[pair.up] = {m_core->GetUeDefaultGatewayAddress(), interface};
    Count(pair.up, mobile, interface);
    m_imsi[pair.down] = imsi;
}

} // namespace tcpsbed
