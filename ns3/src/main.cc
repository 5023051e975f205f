// SPDX-License-Identifier: GPL-2.0-only
//
// tcpsbed-ns3: a network in ns-3 that another program drives over standard input and output, a line of JSON at a time.
//
//   > {"network":{"vertices":3,"links":[…],"routes":[[…]],"traffic":[…],"seed":1,"end_ns":…,"most_lag_ns":…}}
//   < {"ready":"3.37"}                                        the graph stands; radio links have attached
//   > {"send":[7,0,2,86,46,5000]}                             packet 7 from vertex 0 to 2, 86 bytes, code point, moment
//
//   stepped:  > {"until":6000000}                             as far as the driver needs nothing to be told
//             < {"at":5000700,"arrived":[7],"dropped":[[8,0,1]]}
//   by clock: > {"start_ns":…}                                CLOCK_MONOTONIC of the scenario's start
//             < {"at":…,"arrived":[7],"dropped":[]}           whenever something happens
//             < {"overload_ns":…,"at":…}                      later than allowed; it ends
//   attached: the same without packets: "attach":{"how":"descriptor","taps":"…","nodes":[…],"gateway":"…"} in the network
//             names the socket at which nodes hand their devices over before the start, and how they are joined
//
//   > {"queues":1}           < {"queues":[[packets,bytes],…]}
//   > {"traffic":[0,false]}                                   stops or starts a background entry
//   > {"end":1}              < {"done":{"links":[…],"traffic":[…],"unsent":0,"strangers":0,"late_ns":{…}}}
//   < {"failed":"why"}

#include "attach.h"
#include "lines.h"
#include "network.h"
#include "outbox.h"
#include "pace.h"
#include "traffic.h"

#include <csignal>
#include <memory>
#include <stdexcept>
#include <sys/prctl.h>

using namespace ns3;

namespace
{

// Time that radio links have to attach before the scenario starts.
constexpr double kAttachS = 1.0;

bool
HasRadio(const tcpsbed::Json& links)
{
    for (const tcpsbed::Json& link : links.List())
    {
        if (!link["radio"].IsNull())
        {
            return true;
        }
    }
    return false;
}

void
Serve(tcpsbed::Lines& lines)
{
    const std::optional<tcpsbed::Json> first = lines.Next();
    if (!first || (*first)["network"].IsNull())
    {
        throw std::runtime_error("a line with \"network\" comes first");
    }
    const tcpsbed::Json& spec = (*first)["network"];
    std::unique_ptr<tcpsbed::Attachment> attachment;
    if (!spec["attach"].IsNull())
    {
        // Devices of the kernel wake ns-3 from threads of their own, and whole packets leave it again.
        GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::RealtimeSimulatorImpl"));
        GlobalValue::Bind("ChecksumEnabled", BooleanValue(true));
        attachment = std::make_unique<tcpsbed::Attachment>(spec["attach"]);
    }
    RngSeedManager::SetSeed(1 + static_cast<uint32_t>(spec["seed"].Whole() % 0xfffffffe));
    const Time start = HasRadio(spec["links"]) ? Seconds(kAttachS) : Seconds(0);
    tcpsbed::Outbox outbox;
    tcpsbed::Network network(spec, outbox);
    network.SetStart(start);
    const Time end = start + NanoSeconds(spec["end_ns"].Whole());
    tcpsbed::Traffic traffic(spec["traffic"], network, start, end);
    if (start > Seconds(0))
    {
        // Up to the last moment before the start, at which the first packets may come.
        Simulator::Stop(start - NanoSeconds(1));
        Simulator::Run();
    }
    tcpsbed::WriteOut("{\"ready\":\"ns-3\"}\n");
    tcpsbed::Pace pace(network, traffic, outbox, lines, start);
    if (!spec["by_clock"].Bool())
    {
        pace.Step();
    }
    else if (const std::optional<tcpsbed::Json> begin = lines.Next())
    {
        const int64_t startNs = (*begin)["start_ns"].Whole();
        if (attachment)
        {
            attachment->Join(network, startNs);
            pace.RunLive(startNs, spec["most_lag_ns"].Whole());
        }
        else
        {
            pace.FollowClock(startNs, spec["most_lag_ns"].Whole());
        }
    }
}

} // namespace

int
main()
{
    // Ctrl-C is for the program that drives this one, which then ends its input.
    std::signal(SIGINT, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1);
    GlobalValue::Bind("SchedulerType", StringValue("tcpsbed::OpenScheduler"));
    tcpsbed::Lines lines;
    try
    {
        Serve(lines);
    }
    catch (const std::exception& error)
    {
        // The text is that of this program's own errors, which hold no quotation marks but those of kinds.
        std::string text = error.what();
        for (char& c : text)
        {
            c = c == '"' ? '\'' : c;
        }
        tcpsbed::WriteOut("{\"failed\":\"" + text + "\"}\n");
        return 1;
    }
    Simulator::Destroy();
    return 0;
}
