// SPDX-License-Identifier: GPL-2.0-only
//
// Radio access: LTE and 5G-LENA with their core network, and Wi-Fi.
//
//   LTE, NR   UE ~~~ base station ── SGW ── PGW ── vertex     one base station, a UE for each link
//   Wi-Fi     station ~~~ access point                        a channel for each access point
//
// The link of the scenario that goes up begins at the UE or station; its other direction goes down.

#ifndef TCPSBED_RADIO_H
#define TCPSBED_RADIO_H

#include "json.h"
#include "network.h"

#include "ns3/vector.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace tcpsbed
{

// The two directions of a radio link.
struct Pair
{
    size_t up;
    size_t down;
    const Json* radio;
    uint32_t mobile;
    uint32_t fixed;
};

class Radio
{
  public:
    virtual ~Radio() = default;

    // What the links need; nothing if none has a radio. Fills in how their vertices send over them.
    static std::unique_ptr<Radio> Build(const Json& links,
                                        const ns3::NodeContainer& vertices,
                                        std::vector<Way>& ways);

    // A vertex sends packets for `known` over this link.
    virtual void Route(size_t link, ns3::Ipv4Address known) = 0;

    // Whether packets of this link are counted here.
    bool Counts(size_t link) const
    {
        return m_carried.count(link) > 0;
    }

    // Packets and bytes that were handed to the link.
    std::pair<uint64_t, uint64_t> Carried(size_t link) const
    {
        return m_carried.at(link);
    }

  protected:
    // Counts what a node's IPv4 hands to one of its interfaces for this link; to a receiver, if one is given.
    void Count(size_t link, const ns3::Ptr<ns3::Node>& node, uint32_t interface);

    std::map<size_t, std::pair<uint64_t, uint64_t>> m_carried;
};

// Puts a node at a place, in metres, where it stays.
void Stand(const ns3::Ptr<ns3::Node>& node, const ns3::Vector& place);

// The kinds of radio: all links of one kind at once.
std::unique_ptr<Radio> MakeLte(const std::vector<Pair>& pairs,
                               const ns3::NodeContainer& vertices,
                               std::vector<Way>& ways);
std::unique_ptr<Radio> MakeNr(const std::vector<Pair>& pairs,
                              const ns3::NodeContainer& vertices,
                              std::vector<Way>& ways);
std::unique_ptr<Radio> MakeWifi(const std::vector<Pair>& pairs,
                                const ns3::NodeContainer& vertices,
                                std::vector<Way>& ways);

} // namespace tcpsbed

#endif
