// SPDX-License-Identifier: GPL-2.0-only
//
// Transfers without end over one line, by ns-3's TCP: goodput, queueing delay and the share of the first.
//
//   tcp CONTROL QUEUE_BYTES LOSS SECONDS FLOWS SEED        e.g. tcp TcpCubic 30000 0.01 8 1 1
//
// A segment of 1448 B takes 1526 B on the line of tcpsbed (10 Mbit/s) and 1502 B here: rate and queue are scaled.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace ns3;

static const double kTheirs = 1526.0, kHere = 1502.0, kLook = 0.005;
static std::vector<double> g_delays;

static void Look(Ptr<Queue<Packet>> queue, double rate, double end) {
  g_delays.push_back(queue->GetNBytes() * 8e3 / rate);
  if (Simulator::Now().GetSeconds() + kLook < end) {
    Simulator::Schedule(Seconds(kLook), &Look, queue, rate, end);
  }
}

static double Quantile(double share) {
  if (g_delays.empty()) {
    return 0.0;
  }
  return g_delays[static_cast<size_t>(share * static_cast<double>(g_delays.size() - 1))];
}

int main(int argc, char **argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: tcp CONTROL QUEUE_BYTES LOSS SECONDS FLOWS SEED\n");
    return 2;
  }
  const std::string control = std::string("ns3::") + argv[1];
  const double loss = std::atof(argv[3]), seconds = std::atof(argv[4]), rate = 10e6 * kHere / kTheirs;
  const auto packets = static_cast<uint32_t>(std::atof(argv[2]) / kTheirs);
  const int flows = std::atoi(argv[5]);
  RngSeedManager::SetSeed(static_cast<uint32_t>(std::atoi(argv[6])));
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue(control));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(3 << 20));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

  NodeContainer nodes;
  nodes.Create(2);
  PointToPointHelper line;
  line.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rate))));
  line.SetChannelAttribute("Delay", StringValue("15ms"));
  line.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(PACKETS, packets)));
  NetDeviceContainer devices = line.Install(nodes);
  auto errors = CreateObject<RateErrorModel>();
  errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
  errors->SetRate(loss);
  devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
  InternetStackHelper().Install(nodes);
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  Ipv4InterfaceContainer places = addresses.Assign(devices);
  TrafficControlHelper().Uninstall(devices);

  std::vector<Ptr<PacketSink>> sinks;
  for (int i = 0; i < flows; i++) {
    const auto port = static_cast<uint16_t>(5000 + i);
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(places.GetAddress(1), port));
    source.Install(nodes.Get(0)).Start(Seconds(0));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    sinks.push_back(DynamicCast<PacketSink>(sink.Install(nodes.Get(1)).Get(0)));
  }
  auto queue = DynamicCast<PointToPointNetDevice>(devices.Get(0))->GetQueue();
  Simulator::Schedule(Seconds(kLook), &Look, queue, rate, seconds);
  Simulator::Stop(Seconds(seconds));
  Simulator::Run();
  double total = 0;
  for (const auto &sink : sinks) {
    total += static_cast<double>(sink->GetTotalRx());
  }
  std::sort(g_delays.begin(), g_delays.end());
  const double first = total > 0 ? static_cast<double>(sinks[0]->GetTotalRx()) / total : 0;
  std::printf("{\"goodput\": %.4f, \"p50\": %.4f, \"p95\": %.4f, \"share\": %.4f}\n", total * 8e-6 / seconds,
              Quantile(0.5), Quantile(0.95), first);
  Simulator::Destroy();
  return 0;
}
