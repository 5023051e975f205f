// SPDX-License-Identifier: GPL-2.0-only

#include "pace.h"

#include "ns3/realtime-simulator-impl.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <numeric>

using namespace ns3;

namespace tcpsbed
{

namespace
{

// The longest sleep, so that the end of input is seen.
constexpr int64_t kLongestNs = 20000000;
// Spans of lateness that are kept: those of the first hours.
constexpr size_t kMostSpans = 1 << 24;
// Polling interval of ns-3's own clock.
constexpr int64_t kWatchNs = 1000000;
constexpr int64_t kSecond = 1000000000;

void
Halt()
{
    Simulator::Stop();
}

} // namespace

OpenScheduler* OpenScheduler::s_only = nullptr;

NS_OBJECT_ENSURE_REGISTERED(OpenScheduler);

TypeId
OpenScheduler::GetTypeId()
{
    static TypeId id = TypeId("tcpsbed::OpenScheduler").SetParent<MapScheduler>().AddConstructor<OpenScheduler>();
    return id;
}

OpenScheduler::OpenScheduler()
{
    s_only = this;
}

Time
OpenScheduler::Next()
{
    return s_only && !s_only->IsEmpty() ? TimeStep(s_only->PeekNext().key.m_ts) : Time::Max();
}

Pace::Pace(Network& network, Traffic& traffic, Outbox& outbox, Lines& lines, Time start)
    : m_network(network),
      m_traffic(traffic),
      m_outbox(outbox),
      m_lines(lines),
      m_start(start)
{
}

void
Pace::Send(const Json& packet)
{
    const auto field = [&](size_t i) { return static_cast<uint32_t>(packet[i].Whole()); };
    // [number, from, to, bytes, code point, moment]; a moment that is over is now.
    const Time at = std::max(Seconds(0), m_start + NanoSeconds(packet[5].Whole()) - Simulator::Now());
    Simulator::Schedule(at, &Network::Send, &m_network, field(0), field(1), field(2), field(3), field(4));
}

bool
Pace::Obey(const Json& line)
{
    if (!line["send"].IsNull())
    {
        Send(line["send"]);
    }
    else if (!line["until"].IsNull())
    {
        // What was told last may have left a halt behind at the moment at which it was told.
        do
        {
            RunUntil(line["until"].Whole());
        } while (m_outbox.Empty() && m_network.Now() < line["until"].Whole());
        m_outbox.TellMoment(m_network.Now());
    }
    else if (!line["traffic"].IsNull())
    {
        m_traffic.Run(line["traffic"][0].Whole(), line["traffic"][1].Bool());
    }
    else if (!line["queues"].IsNull())
    {
        m_outbox.Tell();
        WriteOut("{\"queues\":" + m_network.Queues() + "}\n");
    }
    return line["end"].IsNull();
}

void
Pace::RunUntil(int64_t at)
{
    const Time left = std::max(Seconds(0), m_start + NanoSeconds(at) - Simulator::Now());
    EventId halt = Simulator::Schedule(left, &Halt);
    Simulator::Run();
    halt.Cancel();
}

void
Pace::Step()
{
    // What else is due at the same moment is done before the driver is told.
    m_outbox.OnFirst([] { Simulator::ScheduleNow(&Halt); });
    while (const std::optional<Json> line = m_lines.Next())
    {
        if (!Obey(*line))
        {
            return Report();
        }
    }
}

void
Pace::FollowClock(int64_t startNs, int64_t mostLagNs)
{
    while (!m_lines.Ended())
    {
        const Time next = OpenScheduler::Next();
        const int64_t due = next == Time::Max() ? INT64_MAX : (next - m_start).GetNanoSeconds();
        const int64_t before = MonotonicNs() - startNs;
        // Before the start `before` is negative: nothing due must not overflow.
        const int64_t left = due == INT64_MAX ? kLongestNs : std::max<int64_t>(0, due - before);
        m_lines.Wait(std::min<int64_t>(kLongestNs, left));
        while (const std::optional<Json> line = m_lines.Poll())
        {
            if (!Obey(*line))
            {
                return Report();
            }
        }
        const int64_t now = MonotonicNs() - startNs;
        if (due <= now && !Keeps(now - due, mostLagNs, due))
        {
            return;
        }
        if (now >= 0)
        {
            RunUntil(now);
        }
        m_outbox.Tell();
    }
}

bool
Pace::Keeps(int64_t lateNs, int64_t mostLagNs, int64_t at)
{
    if (m_lateNs.size() < kMostSpans)
    {
        m_lateNs.push_back(lateNs);
    }
    if (lateNs > mostLagNs)
    {
        WriteOut("{\"overload_ns\":" + std::to_string(lateNs) + ",\"at\":" + std::to_string(at) + "}\n");
    }
    return lateNs <= mostLagNs;
}

void
Pace::RunLive(int64_t startNs, int64_t mostLagNs)
{
    const timespec at{startNs / kSecond, startNs % kSecond};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR)
    {
    }
    // Simulated time stands a nanosecond before the start, or at it.
    Simulator::Schedule(m_start - Simulator::Now(), &Pace::Watch, this, mostLagNs);
    Simulator::Run();
    if (m_ended)
    {
        Report();
    }
}

// Looks at the clock and at what the driver says, again and again while the simulation runs.
void
Pace::Watch(int64_t mostLagNs)
{
    Ptr<RealtimeSimulatorImpl> clock = DynamicCast<RealtimeSimulatorImpl>(Simulator::GetImplementation());
    const int64_t lateNs = (clock->RealtimeNow() - Simulator::Now()).GetNanoSeconds();
    bool go = Keeps(std::max<int64_t>(0, lateNs), mostLagNs, m_network.Now()) && !m_lines.Ended();
    while (go)
    {
        const std::optional<Json> line = m_lines.Poll();
        if (!line)
        {
            break;
        }
        m_ended = !Obey(*line);
        go = !m_ended;
    }
    if (go)
    {
        Simulator::Schedule(NanoSeconds(kWatchNs), &Pace::Watch, this, mostLagNs);
    }
    else
    {
        Simulator::Stop();
    }
}

// How late events of the clock were: mean and percentiles.
std::string
Pace::Lateness()
{
    std::sort(m_lateNs.begin(), m_lateNs.end());
    const double sum = std::accumulate(m_lateNs.begin(), m_lateNs.end(), 0.0);
    const auto share = [&](double p) {
        return m_lateNs.empty() ? 0 : m_lateNs[std::min(m_lateNs.size() - 1, static_cast<size_t>(p * m_lateNs.size()))];
    };
    return "{\"mean\":" + std::to_string(sum / std::max<size_t>(1, m_lateNs.size())) +
           ",\"p50\":" + std::to_string(share(0.5)) + ",\"p99\":" + std::to_string(share(0.99)) +
           ",\"p999\":" + std::to_string(share(0.999)) + ",\"max\":" + std::to_string(share(1)) + "}";
}

void
Pace::Report()
{
    m_outbox.Tell();
    WriteOut("{\"done\":{\"links\":" + m_network.Links() + ",\"traffic\":" + m_traffic.Accounts() +
             ",\"unsent\":" + std::to_string(m_network.troubles.unsent) +
             ",\"strangers\":" + std::to_string(m_network.troubles.strangers) +
             ",\"events\":" + std::to_string(Simulator::GetEventCount()) +
             ",\"moments\":" + std::to_string(m_lateNs.size()) + ",\"late_ns\":" + Lateness() + "}}\n");
}

} // namespace tcpsbed
