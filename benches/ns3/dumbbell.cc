// SPDX-License-Identifier: GPL-2.0-only
//
// The dumbbell of scenarios/dumbbell-udp.toml in ns-3, for benches/run.py: the same packets, the same sizes on the
// wire, the same buffer. It is compiled on the user's machine against its ns-3 and shares no code with tcpsbed.
//
//   operator -- 5 ms --> n1 -- bottleneck, 5 ms, drop-tail 15000 B --> n2 -- 5 ms --> teleoperator
//
// and the same backward. Background traffic enters at n1 and n2 themselves. What decides the result in ns-3:
//   - The device queue is byte-exact only with flow control off; with it, a queue disc of 1000 packets comes first.
//   - A point-to-point device adds 2 bytes (PPP) to IP (20) and UDP (8): payload = wire size - 30.
//   - The packet in transmission has left the queue, so it does not count against the 15000 bytes.
//   - An "infinitely fast" access link is one of 1 Pbit/s: at 1 Tbit/s a packet still takes a nanosecond, and which flow
//     comes first at a full queue, and so which one loses, turns round.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t kHeaderBytes = 30;

// The moment of sending, as the first 8 bytes of the payload.
class SentAt : public Header
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("SentAt").SetParent<Header>().AddConstructor<SentAt>();
        return id;
    }

    TypeId GetInstanceTypeId() const override
    {
        return GetTypeId();
    }

    uint32_t GetSerializedSize() const override
    {
        return 8;
    }

    void Serialize(Buffer::Iterator at) const override
    {
        at.WriteU64(static_cast<uint64_t>(ns));
    }

    uint32_t Deserialize(Buffer::Iterator at) override
    {
        ns = static_cast<int64_t>(at.ReadU64());
        return 8;
    }

    void Print(std::ostream& out) const override
    {
        out << ns;
    }

    int64_t ns{0};
};

// When the next packet of a flow follows: constant spacing, or a rate that is drawn for every packet.
struct Spacing
{
    double rateBps;
    double spread; // 0: constant; 0.2: uniform within 20 % of the rate
    Ptr<UniformRandomVariable> draw;

    Time Next(uint32_t wireBytes) const
    {
        const double bps = spread > 0 ? draw->GetValue(1 - spread, 1 + spread) * rateBps : rateBps;
        return NanoSeconds(static_cast<int64_t>(wireBytes * 8e9 / bps + 0.5));
    }
};

// A source and a sink with what they counted.
class Flow
{
  public:
    Flow(std::string name, uint32_t wireBytes, Spacing spacing, Time stop)
        : m_name(std::move(name)),
          m_wireBytes(wireBytes),
          m_spacing(spacing),
          m_stop(stop)
    {
    }

    void Connect(Ptr<Node> from, Ptr<Node> to, Ipv4Address address, uint16_t port, Time start)
    {
        m_sink = Socket::CreateSocket(to, UdpSocketFactory::GetTypeId());
        m_sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_sink->SetRecvCallback(MakeCallback(&Flow::Receive, this));
        m_source = Socket::CreateSocket(from, UdpSocketFactory::GetTypeId());
        m_source->Connect(InetSocketAddress(address, port));
        Simulator::Schedule(start, &Flow::Send, this);
    }

    void PrintJson(std::ostream& out) const
    {
        out << "{\"name\":\"" << m_name << "\",\"wire_bytes\":" << m_wireBytes << ",\"sent\":" << m_sent
            << ",\"received\":" << m_received << ",\"delay_ms\":{\"mean\":" << m_sumNs / std::max<uint64_t>(m_received, 1) / 1e6
            << ",\"max\":" << m_maxNs / 1e6 << "}}";
    }

  private:
    void Send()
    {
        if (Simulator::Now() >= m_stop)
        {
            return;
        }
        SentAt header;
        header.ns = Simulator::Now().GetNanoSeconds();
        Ptr<Packet> packet = Create<Packet>(m_wireBytes - kHeaderBytes - header.GetSerializedSize());
        packet->AddHeader(header);
        m_source->Send(packet);
        m_sent++;
        Simulator::Schedule(m_spacing.Next(m_wireBytes), &Flow::Send, this);
    }

    void Receive(Ptr<Socket> socket)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            SentAt header;
            packet->RemoveHeader(header);
            const int64_t ns = Simulator::Now().GetNanoSeconds() - header.ns;
            m_received++;
            m_sumNs += static_cast<double>(ns);
            m_maxNs = std::max(m_maxNs, ns);
        }
    }

    std::string m_name;
    uint32_t m_wireBytes;
    Spacing m_spacing;
    Time m_stop;
    Ptr<Socket> m_source;
    Ptr<Socket> m_sink;
    uint64_t m_sent{0};
    uint64_t m_received{0};
    double m_sumNs{0};
    int64_t m_maxNs{0};
};

struct Options
{
    double seconds{500};
    double cbrBps{400e3};
    double vbrBps{400e3};
    double vbrSpread{0};
    double bottleneckBps{1.5e6};
    uint32_t crossBytes{50};
    uint32_t bufferBytes{15000};
    bool serialiseAccess{false};
    std::string scheduler{"ns3::MapScheduler"};
};

Options
Parse(int argc, char** argv)
{
    Options o;
    CommandLine line(__FILE__);
    line.AddValue("seconds", "simulated time", o.seconds);
    line.AddValue("cbr", "constant bit rate traffic, bit/s each way", o.cbrBps);
    line.AddValue("vbr", "variable bit rate traffic, mean bit/s each way", o.vbrBps);
    line.AddValue("vbr-spread", "its rate is uniform within this share, drawn for each packet; 0: constant", o.vbrSpread);
    line.AddValue("bottleneck", "bit/s", o.bottleneckBps);
    line.AddValue("cross-bytes", "background packets on the wire", o.crossBytes);
    line.AddValue("buffer", "bytes", o.bufferBytes);
    line.AddValue("serialise-access", "access links as slow as the bottleneck", o.serialiseAccess);
    line.AddValue("scheduler", "event list", o.scheduler);
    line.Parse(argc, argv);
    return o;
}

// Operator, n1, n2, teleoperator and the three links between them; returns the address of each node's first device.
std::vector<Ipv4Address>
Build(const NodeContainer& nodes, const Options& o)
{
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);
    PointToPointHelper link;
    link.DisableFlowControl();
    link.SetChannelAttribute("Delay", StringValue("5ms"));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    for (uint32_t i = 0; i < 3; i++)
    {
        const bool slow = i == 1 || o.serialiseAccess;
        const uint32_t buffer = i == 1 ? o.bufferBytes : 1000000;
        link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(slow ? o.bottleneckBps : 1e15)));
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(BYTES, buffer)));
        addresses.Assign(link.Install(nodes.Get(i), nodes.Get(i + 1)));
        addresses.NewNetwork();
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    std::vector<Ipv4Address> first;
    for (uint32_t i = 0; i < nodes.GetN(); i++)
    {
        Ptr<TrafficControlLayer> control = nodes.Get(i)->GetObject<TrafficControlLayer>();
        for (uint32_t d = 0; d < nodes.Get(i)->GetNDevices(); d++)
        {
            NS_ABORT_MSG_IF(control->GetRootQueueDiscOnDevice(nodes.Get(i)->GetDevice(d)), "a queue disc is installed");
        }
        first.push_back(nodes.Get(i)->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal());
    }
    return first;
}

} // namespace

int
main(int argc, char** argv)
{
    using Clock = std::chrono::steady_clock;
    const Options o = Parse(argc, argv);
    GlobalValue::Bind("SchedulerType", StringValue(o.scheduler));
    const auto begin = Clock::now();

    NodeContainer nodes;
    nodes.Create(4);
    const std::vector<Ipv4Address> address = Build(nodes, o);
    const Time stop = Seconds(o.seconds);
    std::vector<std::unique_ptr<Flow>> flows;
    const auto add = [&](const char* name, uint32_t bytes, Spacing spacing, int from, int to, Time start) {
        flows.push_back(std::make_unique<Flow>(name, bytes, spacing, stop));
        flows.back()->Connect(nodes.Get(from), nodes.Get(to), address[to], 5000 + flows.size(), start);
    };
    const auto spacing = [&](double bps, double spread) {
        return Spacing{bps, spread, CreateObject<UniformRandomVariable>()};
    };
    add("forward", 86, spacing(86 * 8e3, 0), 0, 3, MicroSeconds(500));
    add("backward", 137, spacing(137 * 8e3, 0), 3, 0, Seconds(0));
    add("vbr.forward", o.crossBytes, spacing(o.vbrBps, o.vbrSpread), 1, 2, Seconds(0));
    add("vbr.backward", o.crossBytes, spacing(o.vbrBps, o.vbrSpread), 2, 1, Seconds(0));
    add("cbr.forward", o.crossBytes, spacing(o.cbrBps, 0), 1, 2, MilliSeconds(500));
    add("cbr.backward", o.crossBytes, spacing(o.cbrBps, 0), 2, 1, MilliSeconds(500));

    // One second more, so that what is in flight arrives.
    Simulator::Stop(stop + Seconds(1));
    const auto ready = Clock::now();
    Simulator::Run();
    const auto end = Clock::now();

    std::cout.precision(9);
    std::cout << "{\"setup_s\":" << std::chrono::duration<double>(ready - begin).count()
              << ",\"simulate_s\":" << std::chrono::duration<double>(end - ready).count()
              << ",\"simulated_s\":" << o.seconds << ",\"events\":" << Simulator::GetEventCount() << ",\"flows\":[";
    for (size_t i = 0; i < flows.size(); i++)
    {
        std::cout << (i ? "," : "");
        flows[i]->PrintJson(std::cout);
    }
    std::cout << "]}" << std::endl;
    Simulator::Destroy();
    return 0;
}
