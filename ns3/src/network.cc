// SPDX-License-Identifier: GPL-2.0-only

#include "network.h"

#include "numbered.h"
#include "radio.h"

#include "ns3/pointer.h"

#include <algorithm>
#include <map>
#include <stdexcept>

using namespace ns3;

namespace tcpsbed
{

namespace
{

constexpr uint16_t kPort = 9000;
constexpr uint16_t kBackgroundPort = 9001;
// "Infinitely fast": at 1 Tbit/s a packet would still take a nanosecond, and which flow comes first at a full queue, and
// so which one loses, would turn round.
constexpr double kInfiniteBps = 1e15;
// A packet of 65535 bytes is not cut into pieces, as nowhere in the scenario.
constexpr uint16_t kMtu = 65535;
constexpr uint32_t kNone = 0xffff;
// What a point-to-point device has around IP.
constexpr uint32_t kPppBytes = 2;

QueueSize
SizeOf(const Json& queue)
{
    if (!queue["limit_packets"].IsNull())
    {
        return QueueSize(PACKETS, queue["limit_packets"].Whole());
    }
    // The packet in transmission has left the queue, so it does not count against the limit.
    return QueueSize(BYTES, queue["limit_bytes"].IsNull() ? 0xffffffff : queue["limit_bytes"].Whole());
}

Ptr<RateErrorModel>
LossOf(const Json& link)
{
    Ptr<RateErrorModel> model = CreateObject<RateErrorModel>();
    model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    model->SetRate(link["loss"].Number());
    return model;
}

// A point-to-point device that makes packets longer on the wire; the next IP takes off what is beyond its own length.
class PaddingDevice : public PointToPointNetDevice
{
  public:
    explicit PaddingDevice(uint32_t bytes)
        : m_bytes(bytes)
    {
    }

    bool Send(Ptr<Packet> packet, const Address& to, uint16_t protocol) override
    {
        packet->AddPaddingAtEnd(m_bytes);
        return PointToPointNetDevice::Send(packet, to, protocol);
    }

  private:
    uint32_t m_bytes;
};

} // namespace

Network::Network(const Json& spec, Outbox& outbox)
    : m_outbox(outbox),
      m_paddingBytes(spec["attach"].IsNull() ? 0 : spec["attach"]["link_bytes"].Whole() - kPppBytes),
      m_addresses("10.0.0.0", "255.255.255.252")
{
    const Json& links = spec["links"];
    const size_t count = links.List().size();
    vertices.Create(spec["vertices"].Whole());
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(vertices);
    m_accounts.resize(count);
    m_ways.resize(count);
    m_fates.resize(spec["traffic"].List().size());
    for (const Json& link : links.List())
    {
        m_from.push_back(link["from"].Whole());
        m_to.push_back(link["to"].Whole());
        if (std::max(m_from.back(), m_to.back()) >= vertices.GetN())
        {
            throw std::runtime_error("a link leads to no vertex");
        }
    }
    for (size_t i = 0; i < count; i++)
    {
        m_accounts[i].rateBps = links[i]["rate_bps"].Number();
        if (links[i]["medium"].IsNull() && links[i]["radio"].IsNull())
        {
            BuildWire(links[i], i);
        }
    }
    BuildMedia(links);
    m_radio = Radio::Build(links, vertices, m_ways);
    Route(spec["routes"]);
    OpenSockets();
    WatchStrangers();
}

Network::~Network() = default;

void
Network::BuildWire(const Json& link, size_t number)
{
    Ptr<PointToPointChannel> channel = CreateObject<PointToPointChannel>();
    channel->SetAttribute("Delay", TimeValue(NanoSeconds(link["delay_ns"].Whole())));
    const double rate = link["rate_bps"].IsNull() ? kInfiniteBps : link["rate_bps"].Number();
    NetDeviceContainer ends;
    for (const uint32_t vertex : {m_from[number], m_to[number]})
    {
        // Without flow control: with it a queue disc of 1000 packets would come before this queue, which then never drops.
        Ptr<PointToPointNetDevice> device = CreateObject<PaddingDevice>(m_paddingBytes);
        device->SetDataRate(DataRate(static_cast<uint64_t>(rate + 0.5)));
        device->SetMtu(kMtu);
        device->SetAddress(Mac48Address::Allocate());
        Ptr<DropTailQueue<Packet>> queue = CreateObject<DropTailQueue<Packet>>();
        queue->SetMaxSize(SizeOf(link["queue"]));
        device->SetQueue(queue);
        vertices.Get(vertex)->AddDevice(device);
        device->Attach(channel);
        ends.Add(device);
    }
    Ipv4InterfaceContainer addresses = m_addresses.Assign(ends);
    m_addresses.NewNetwork();
    m_ways[number] = {addresses.GetAddress(1), Interface(ends.Get(0))};
    Watch(number, DynamicCast<PointToPointNetDevice>(ends.Get(0))->GetQueue());
    Account& account = m_accounts[number];
    ends.Get(0)->TraceConnectWithoutContext(
        "PhyTxBegin",
        Callback<void, Ptr<const Packet>>([&account](Ptr<const Packet> packet) {
            account.packets++;
            account.bytes += packet->GetSize();
        }));
    if (!link["loss"].IsNull())
    {
        ends.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(LossOf(link)));
        WatchReceiver(number, ends.Get(1));
    }
}

void
Network::BuildMedia(const Json& links)
{
    std::map<std::string, std::vector<size_t>> media;
    for (size_t i = 0; i < links.List().size(); i++)
    {
        if (!links[i]["medium"].IsNull())
        {
            media[links[i]["medium"].Text()].push_back(i);
        }
    }
    for (const auto& [name, members] : media)
    {
        JoinMedium(links, members);
    }
}

// One CSMA bus for all links of a medium, with a device at each vertex that one of them touches.
void
Network::JoinMedium(const Json& links, const std::vector<size_t>& members)
{
    const Json& first = links[members.front()];
    CsmaHelper bus;
    bus.DisableFlowControl();
    const double rate = first["rate_bps"].Number();
    bus.SetChannelAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rate + 0.5))));
    bus.SetChannelAttribute("Delay", TimeValue(NanoSeconds(first["delay_ns"].Whole())));
    bus.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(SizeOf(first["queue"])));
    std::vector<uint32_t> places;
    for (const size_t link : members)
    {
        for (const uint32_t vertex : {m_from[link], m_to[link]})
        {
            if (std::find(places.begin(), places.end(), vertex) == places.end())
            {
                places.push_back(vertex);
            }
        }
    }
    NodeContainer nodes;
    for (const uint32_t place : places)
    {
        nodes.Add(vertices.Get(place));
    }
    NetDeviceContainer devices = bus.Install(nodes);
    static uint32_t buses = 0;
    const std::string base = "172.16." + std::to_string(buses++) + ".0";
    Ipv4AddressHelper addresses(base.c_str(), "255.255.255.0");
    Ipv4InterfaceContainer given = addresses.Assign(devices);
    NeighborCacheHelper().PopulateNeighborCache(given);
    const auto place = [&](uint32_t vertex) {
        return std::find(places.begin(), places.end(), vertex) - places.begin();
    };
    for (const size_t link : members)
    {
        Ptr<NetDevice> sender = devices.Get(place(m_from[link]));
        m_ways[link] = {given.GetAddress(place(m_to[link])), Interface(sender)};
        Watch(link, DynamicCast<CsmaNetDevice>(sender)->GetQueue());
        Account& account = m_accounts[link];
        sender->TraceConnectWithoutContext(
            "PhyTxEnd",
            Callback<void, Ptr<const Packet>>([&account](Ptr<const Packet> packet) {
                account.packets++;
                account.bytes += packet->GetSize();
            }));
    }
}

// Counts what a queue drops and the most that ever waited in it.
void
Network::Watch(size_t number, const Ptr<Queue<Packet>>& queue)
{
    Account& account = m_accounts[number];
    account.queue = queue;
    queue->TraceConnectWithoutContext("Drop",
                                      Callback<void, Ptr<const Packet>>([this, number](Ptr<const Packet> packet) {
                                          Drop(number, Reason::kFull, packet);
                                      }));
    queue->TraceConnectWithoutContext("BytesInQueue",
                                      Callback<void, uint32_t, uint32_t>([&account](uint32_t, uint32_t bytes) {
                                          account.mostBytes = std::max(account.mostBytes, bytes);
                                      }));
    queue->TraceConnectWithoutContext("PacketsInQueue",
                                      Callback<void, uint32_t, uint32_t>([&account](uint32_t, uint32_t packets) {
                                          account.mostPackets = std::max(account.mostPackets, packets);
                                      }));
}

void
Network::WatchReceiver(size_t number, const Ptr<NetDevice>& device)
{
    device->TraceConnectWithoutContext("PhyRxDrop",
                                       Callback<void, Ptr<const Packet>>([this, number](Ptr<const Packet> packet) {
                                           Drop(number, Reason::kLoss, packet);
                                       }));
}

uint32_t
Network::Interface(const Ptr<NetDevice>& device) const
{
    return device->GetNode()->GetObject<Ipv4>()->GetInterfaceForDevice(device);
}

void
Network::Route(const Json& routes)
{
    for (uint32_t v = 0; v < vertices.GetN(); v++)
    {
        Ptr<Ipv4> stack = vertices.Get(v)->GetObject<Ipv4>();
        // Interface 0 is loopback; a vertex that no link touches is known by nothing.
        m_known.push_back(stack->GetNInterfaces() > 1 ? stack->GetAddress(1, 0).GetLocal() : Ipv4Address());
    }
    for (const Json& row : routes.List())
    {
        m_routes.emplace_back();
        for (const Json& link : row.List())
        {
            m_routes.back().push_back(link.IsNull() ? kNone : link.Whole());
        }
    }
    for (uint32_t d = 0; d < vertices.GetN(); d++)
    {
        LeadTo(d, m_known[d]);
    }
}

// Packets for `address` go to vertex `to` from all others.
void
Network::LeadTo(uint32_t to, Ipv4Address address)
{
    Ipv4StaticRoutingHelper helper;
    for (uint32_t v = 0; v < vertices.GetN(); v++)
    {
        const uint32_t link = m_routes.at(v).at(to);
        if (v == to || link >= m_ways.size())
        {
            continue;
        }
        Ptr<Ipv4StaticRouting> table = helper.GetStaticRouting(vertices.Get(v)->GetObject<Ipv4>());
        table->AddHostRouteTo(address, m_ways[link].next, m_ways[link].interface);
        if (m_radio)
        {
            m_radio->Route(link, address);
        }
    }
}

void
Network::Lead(uint32_t to, Ipv4Address address, uint32_t interface)
{
    LeadTo(to, address);
    Ipv4StaticRoutingHelper().GetStaticRouting(vertices.Get(to)->GetObject<Ipv4>())->AddHostRouteTo(address, interface);
}

void
Network::OpenSockets()
{
    for (uint32_t v = 0; v < vertices.GetN(); v++)
    {
        for (auto* sockets : {&m_sockets, &m_background})
        {
            const bool ours = sockets == &m_sockets;
            Ptr<Socket> socket = Socket::CreateSocket(vertices.Get(v), UdpSocketFactory::GetTypeId());
            socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), ours ? kPort : kBackgroundPort));
            socket->SetRecvCallback(
                MakeCallback(ours ? &Network::Receive : &Network::ReceiveBackground, this));
            sockets->push_back(socket);
        }
    }
}

// Counts packets for which a vertex knows no way: they are for no node.
void
Network::WatchStrangers()
{
    for (uint32_t v = 0; v < vertices.GetN(); v++)
    {
        vertices.Get(v)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext(
            "Drop",
            Callback<void, const Ipv4Header&, Ptr<const Packet>, Ipv4L3Protocol::DropReason, Ptr<Ipv4>, uint32_t>(
                [this](const Ipv4Header&, Ptr<const Packet>, Ipv4L3Protocol::DropReason why, Ptr<Ipv4>, uint32_t) {
                    troubles.strangers += why == Ipv4L3Protocol::DROP_NO_ROUTE;
                }));
    }
}

void
Network::Send(uint32_t number, uint32_t from, uint32_t to, uint32_t wireBytes, uint32_t dscp)
{
    if (std::max(from, to) >= vertices.GetN() || number >= kBackground)
    {
        return;
    }
    m_sockets[from]->SetIpTos(dscp << 2);
    if (m_sockets[from]->SendTo(MakeNumbered(number, wireBytes), 0, InetSocketAddress(m_known[to], kPort)) < 0)
    {
        m_outbox.Dropped(Now(), number, kNone, Reason::kNoRoute);
    }
}

void
Network::SendBackground(uint32_t entry, uint32_t from, uint32_t to, uint32_t wireBytes, uint32_t dscp)
{
    m_background[from]->SetIpTos(dscp << 2);
    m_background[from]->SendTo(MakeNumbered(kBackground | entry, wireBytes - std::min(wireBytes, m_paddingBytes)),
                               0,
                               InetSocketAddress(m_known[to], kBackgroundPort));
}

void
Network::Receive(Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        Number number;
        packet->RemoveHeader(number);
        m_outbox.Arrived(Now(), number.value);
    }
}

void
Network::ReceiveBackground(Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        Number number;
        packet->RemoveHeader(number);
        m_fates.at(number.value & ~kBackground).first++;
    }
}

void
Network::Drop(size_t number, Reason reason, Ptr<const Packet> packet)
{
    Account& account = m_accounts[number];
    (reason == Reason::kFull ? account.full : account.lost)++;
    (reason == Reason::kFull ? account.fullBytes : account.lostBytes) += packet->GetSize();
    Label label;
    if (!packet->PeekPacketTag(label))
    {
        return;
    }
    if (label.value & kBackground)
    {
        m_fates.at(label.value & ~kBackground).second++;
    }
    else
    {
        m_outbox.Dropped(Now(), label.value, static_cast<int>(number), reason);
    }
}

int64_t
Network::Now() const
{
    return (Simulator::Now() - m_start).GetNanoSeconds();
}

std::string
Network::Queues() const
{
    std::string text;
    for (const Account& a : m_accounts)
    {
        const uint32_t packets = a.queue ? a.queue->GetNPackets() : 0;
        const uint32_t bytes = a.queue ? a.queue->GetNBytes() : 0;
        text += (text.empty() ? "[" : ",[") + std::to_string(packets) + "," + std::to_string(bytes) + "]";
    }
    return "[" + text + "]";
}

std::string
Network::Links() const
{
    std::string text;
    for (size_t i = 0; i < m_accounts.size(); i++)
    {
        Account a = m_accounts[i];
        if (m_radio && m_radio->Counts(i))
        {
            std::tie(a.packets, a.bytes) = m_radio->Carried(i);
        }
        const uint64_t busyNs = a.rateBps > 0 ? static_cast<uint64_t>(a.bytes * 8e9 / a.rateBps) : 0;
        text += text.empty() ? "" : ",";
        text += "{\"packets\":" + std::to_string(a.packets - a.lost) + ",\"bytes\":" + std::to_string(a.bytes - a.lostBytes) +
                ",\"full\":" + std::to_string(a.full) + ",\"lost\":" + std::to_string(a.lost) +
                ",\"dropped_bytes\":" + std::to_string(a.fullBytes + a.lostBytes) +
                ",\"most_bytes\":" + std::to_string(a.mostBytes) + ",\"most_packets\":" + std::to_string(a.mostPackets) +
                ",\"busy_ns\":" + std::to_string(busyNs) + "}";
    }
    return "[" + text + "]";
}

std::pair<uint64_t, uint64_t>
Network::BackgroundFate(uint32_t entry) const
{
    return m_fates.at(entry);
}

} // namespace tcpsbed
