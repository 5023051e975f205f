// SPDX-License-Identifier: GPL-2.0-only

#include "traffic.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

using namespace ns3;

namespace tcpsbed
{

namespace
{

using Arrival = std::optional<std::pair<double, uint32_t>>;

double
SpacingNs(double bytes, double rateBps)
{
    return bytes * 8e9 / rateBps;
}

// Every `spacingNs`, counted from the start so that nothing drifts; sizes may vary around their mean.
class Beat : public Arrivals
{
  public:
    Beat(double rateBps, uint32_t bytes, double low = 1, double high = 1)
        : m_spacingNs(SpacingNs(bytes, rateBps)),
          m_bytes(bytes),
          m_low(low),
          m_high(high),
          m_draw(CreateObject<UniformRandomVariable>())
    {
    }

    Arrival Next() override
    {
        const double scale = m_low < m_high ? m_draw->GetValue(m_low, m_high) : 1;
        return std::make_pair(m_n++ * m_spacingNs, static_cast<uint32_t>(std::max(1.0, m_bytes * scale + 0.5)));
    }

  private:
    double m_spacingNs;
    double m_bytes;
    double m_low;
    double m_high;
    double m_n{0};
    Ptr<UniformRandomVariable> m_draw;
};

// Exponential gaps; sizes constant or exponential.
class Poisson : public Arrivals
{
  public:
    Poisson(double rateBps, uint32_t bytes, bool exponentialSize)
        : m_meanNs(SpacingNs(bytes, rateBps)),
          m_bytes(bytes),
          m_exponentialSize(exponentialSize),
          m_draw(CreateObject<ExponentialRandomVariable>())
    {
    }

    Arrival Next() override
    {
        m_atNs += m_draw->GetValue(m_meanNs, 0);
        const double bytes = m_exponentialSize ? std::max(1.0, m_draw->GetValue(m_bytes, 0) + 0.5) : m_bytes;
        return std::make_pair(m_atNs, static_cast<uint32_t>(bytes));
    }

  private:
    double m_meanNs;
    double m_bytes;
    bool m_exponentialSize;
    double m_atNs{0};
    Ptr<ExponentialRandomVariable> m_draw;
};

// A rate that is drawn for every packet, or holds for a period; a packet comes when its bits have accumulated.
class Varying : public Arrivals
{
  public:
    Varying(double low, double high, uint32_t bytes, double periodNs)
        : m_low(low),
          m_high(high),
          m_bytes(bytes),
          m_periodNs(periodNs),
          m_endNs(periodNs),
          m_draw(CreateObject<UniformRandomVariable>())
    {
        m_rateBps = m_draw->GetValue(m_low, m_high);
    }

    Arrival Next() override
    {
        const auto next = std::make_pair(m_atNs, m_bytes);
        double bits = m_bytes * 8.0;
        while (m_periodNs > 0 && bits > m_rateBps * (m_endNs - m_atNs) / 1e9)
        {
            bits -= m_rateBps * (m_endNs - m_atNs) / 1e9;
            m_atNs = m_endNs;
            m_endNs += m_periodNs;
            m_rateBps = m_draw->GetValue(m_low, m_high);
        }
        m_atNs += bits * 1e9 / m_rateBps;
        if (m_periodNs <= 0)
        {
            m_rateBps = m_draw->GetValue(m_low, m_high);
        }
        return next;
    }

  private:
    double m_low;
    double m_high;
    uint32_t m_bytes;
    double m_periodNs;
    double m_endNs;
    double m_rateBps;
    double m_atNs{0};
    Ptr<UniformRandomVariable> m_draw;
};

// Packets at recorded moments, once or in rounds.
class Recorded : public Arrivals
{
  public:
    Recorded(std::vector<std::pair<double, uint32_t>> packets, double loopNs)
        : m_packets(std::move(packets)),
          m_loopNs(loopNs)
    {
    }

    Arrival Next() override
    {
        if (m_place == m_packets.size() && m_loopNs > 0)
        {
            m_place = 0;
            m_baseNs += m_loopNs;
        }
        if (m_place >= m_packets.size())
        {
            return std::nullopt;
        }
        const auto& [at, bytes] = m_packets[m_place++];
        return std::make_pair(m_baseNs + at, bytes);
    }

  private:
    std::vector<std::pair<double, uint32_t>> m_packets;
    double m_loopNs;
    size_t m_place{0};
    double m_baseNs{0};
};

std::vector<std::pair<double, uint32_t>>
PacketsOf(const Json& rows)
{
    std::vector<std::pair<double, uint32_t>> packets;
    for (const Json& row : rows.List())
    {
        packets.emplace_back(row[0].Number(), row[1].Whole());
    }
    return packets;
}

// Frames cut into packets, one right behind the other.
std::vector<std::pair<double, uint32_t>>
Cut(const Json& model)
{
    const int64_t overhead = model["overhead_bytes"].Whole();
    const int64_t most = model["packet_bytes"].Whole() - overhead;
    std::vector<std::pair<double, uint32_t>> packets;
    for (const Json& frame : model["frames"].List())
    {
        int64_t left = frame[1].Whole();
        do
        {
            const int64_t content = std::min(left, most);
            packets.emplace_back(frame[0].Number(), content + overhead);
            left -= content;
        } while (left > 0 && most > 0);
    }
    return packets;
}

std::unique_ptr<Arrivals>
MakeVbr(const Json& model)
{
    const double low = model["low_bps"].Number();
    const double high = model["high_bps"].Number();
    const uint32_t bytes = model["packet_bytes"].Whole();
    const double mean = (low + high) / 2;
    const std::string& vary = model["vary"]["kind"].Text();
    if (vary == "constant")
    {
        return std::make_unique<Beat>(mean, bytes);
    }
    if (vary == "size")
    {
        return std::make_unique<Beat>(mean, bytes, low / mean, high / mean);
    }
    return std::make_unique<Varying>(low, high, bytes, model["vary"]["period_ns"].Number());
}

} // namespace

std::unique_ptr<Arrivals>
MakeArrivals(const Json& model)
{
    const std::string& kind = model["kind"].Text();
    const uint32_t bytes = model["packet_bytes"].Whole();
    if (kind == "cbr")
    {
        return std::make_unique<Beat>(model["rate_bps"].Number(), bytes);
    }
    if (kind == "poisson")
    {
        return std::make_unique<Poisson>(model["rate_bps"].Number(), bytes, model["exponential_size"].Bool());
    }
    if (kind == "vbr")
    {
        return MakeVbr(model);
    }
    if (kind == "replay" || kind == "frames")
    {
        auto packets = kind == "replay" ? PacketsOf(model["packets"]) : Cut(model);
        return std::make_unique<Recorded>(std::move(packets), model["loop_ns"].Number());
    }
    throw std::runtime_error("background traffic of kind \"" + kind + "\"");
}

Traffic::Traffic(const Json& entries, Network& network, Time start, Time end)
    : m_network(network)
{
    for (const Json& spec : entries.List())
    {
        Entry entry;
        entry.from = spec["from"].Whole();
        entry.to = spec["to"].Whole();
        entry.dscp = spec["dscp"].Whole();
        entry.start = start + NanoSeconds(spec["start_ns"].Whole());
        entry.stop = spec["stop_ns"].IsNull() ? end : std::min(end, start + NanoSeconds(spec["stop_ns"].Whole()));
        entry.arrivals = MakeArrivals(spec["model"]);
        if (std::max(entry.from, entry.to) >= network.vertices.GetN())
        {
            throw std::runtime_error("background traffic leads to no vertex");
        }
        m_entries.push_back(std::move(entry));
    }
    for (size_t i = 0; i < m_entries.size(); i++)
    {
        Schedule(i);
    }
}

void
Traffic::Schedule(size_t number)
{
    Entry& entry = m_entries[number];
    const Arrival next = entry.arrivals->Next();
    if (!next)
    {
        return;
    }
    const Time at = entry.start + NanoSeconds(static_cast<int64_t>(next->first + 0.5));
    if (at < entry.stop)
    {
        Simulator::Schedule(std::max(Seconds(0), at - Simulator::Now()), &Traffic::Due, this, number, next->second);
    }
}

// Background traffic comes after packets that arrive at the same moment, as in the built-in network: which of two waits
// for the other would else depend on when each was scheduled.
void
Traffic::Due(size_t number, uint32_t bytes)
{
    Simulator::ScheduleNow(&Traffic::Emit, this, number, bytes);
}

void
Traffic::Emit(size_t number, uint32_t bytes)
{
    Entry& entry = m_entries[number];
    if (entry.running)
    {
        entry.packets++;
        entry.bytes += bytes;
        m_network.SendBackground(number, entry.from, entry.to, bytes, entry.dscp);
    }
    Schedule(number);
}

void
Traffic::Run(size_t entry, bool running)
{
    if (entry < m_entries.size())
    {
        m_entries[entry].running = running;
    }
}

std::string
Traffic::Accounts() const
{
    std::string text;
    for (size_t i = 0; i < m_entries.size(); i++)
    {
        const auto [delivered, dropped] = m_network.BackgroundFate(i);
        text += text.empty() ? "" : ",";
        text += "{\"packets\":" + std::to_string(m_entries[i].packets) + ",\"bytes\":" + std::to_string(m_entries[i].bytes) +
                ",\"delivered\":" + std::to_string(delivered) + ",\"dropped\":" + std::to_string(dropped) + "}";
    }
    return "[" + text + "]";
}

} // namespace tcpsbed
