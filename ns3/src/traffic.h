// SPDX-License-Identifier: GPL-2.0-only
//
// Background traffic inside the network: constant, Poisson and variable bit rate, recorded packets, frames.

#ifndef TCPSBED_TRAFFIC_H
#define TCPSBED_TRAFFIC_H

#include "json.h"
#include "network.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tcpsbed
{

// When packets come, from the start of the entry, and how large they are on the wire.
class Arrivals
{
  public:
    virtual ~Arrivals() = default;
    // The next packet as (ns, bytes), in order of time; nothing after the last.
    virtual std::optional<std::pair<double, uint32_t>> Next() = 0;
};

// Builds the model of an entry; throws std::runtime_error for one that it does not know.
std::unique_ptr<Arrivals> MakeArrivals(const Json& model);

// All entries of a scenario.
class Traffic
{
  public:
    // `end` is when the scenario ends.
    Traffic(const Json& entries, Network& network, ns3::Time start, ns3::Time end);

    // Stops or starts an entry, whose clock runs on meanwhile.
    void Run(size_t entry, bool running);

    // Accounts of the entries: [{"packets":…}, …].
    std::string Accounts() const;

  private:
    struct Entry
    {
        uint32_t from;
        uint32_t to;
        uint32_t dscp;
        ns3::Time start;
        ns3::Time stop;
        std::unique_ptr<Arrivals> arrivals;
        bool running{true};
        uint64_t packets{0};
        uint64_t bytes{0};
    };

    void Schedule(size_t entry);
    void Due(size_t entry, uint32_t bytes);
    void Emit(size_t entry, uint32_t bytes);

    Network& m_network;
    std::vector<Entry> m_entries;
};

} // namespace tcpsbed

#endif
