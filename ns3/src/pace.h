// SPDX-License-Identifier: GPL-2.0-only
//
// Who says how far simulated time goes: the driver, step by step, or the machine's clock.

#ifndef TCPSBED_PACE_H
#define TCPSBED_PACE_H

#include "lines.h"
#include "network.h"
#include "outbox.h"
#include "traffic.h"

#include "ns3/core-module.h"

#include <string>
#include <vector>

namespace tcpsbed
{

// The default event list, which tells when the next event is due.
class OpenScheduler : public ns3::MapScheduler
{
  public:
    static ns3::TypeId GetTypeId();
    OpenScheduler();

    // When the next event is due; the end of time if there is none.
    static ns3::Time Next();

  private:
    static OpenScheduler* s_only;
};

// A simulated network and the lines that drive it.
class Pace
{
  public:
    Pace(Network& network, Traffic& traffic, Outbox& outbox, Lines& lines, ns3::Time start);

    // Obeys lines until "end": {"until":T} runs to T, or to the first moment at which the driver has to be told something.
    void Step();

    // Keeps up with CLOCK_MONOTONIC from `startNs` until "end". Gives up, with a line that says so, when it is later
    // than `mostLagNs`.
    void FollowClock(int64_t startNs, int64_t mostLagNs);

    // The same by ns-3's own real-time clock, which devices of the kernel wake; the start is that of simulated time.
    void RunLive(int64_t startNs, int64_t mostLagNs);

    // Accounts at the end.
    void Report();

  private:
    // False at the end.
    bool Obey(const Json& line);
    void RunUntil(int64_t at);
    void Send(const Json& packet);
    void Watch(int64_t mostLagNs);
    // Notes how late ns-3 is; false, with a line that says so, if it is later than `mostLagNs`.
    bool Keeps(int64_t lateNs, int64_t mostLagNs, int64_t at);
    std::string Lateness();

    Network& m_network;
    Traffic& m_traffic;
    Outbox& m_outbox;
    Lines& m_lines;
    ns3::Time m_start;
    std::vector<int64_t> m_lateNs;
    bool m_ended{false};
};

} // namespace tcpsbed

#endif
