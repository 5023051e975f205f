// SPDX-License-Identifier: GPL-2.0-only
//
// The graph of the scenario as ns-3 nodes, channels and queues.
//
//   vertex ── device ══ channel ══ device ── vertex      one pair of devices for each link, used in its direction
//      └── UDP sockets: 9000 for the driver's packets, 9001 for background traffic
//
// Every vertex has one address by which it is known; routes are those that the driver chose, as host routes.

#ifndef TCPSBED_NETWORK_H
#define TCPSBED_NETWORK_H

#include "json.h"
#include "outbox.h"

#include "ns3/csma-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <memory>
#include <string>
#include <vector>

namespace tcpsbed
{

class Radio;

// A link's accounts.
struct Account
{
    double rateBps{0};
    uint64_t packets{0};
    uint64_t bytes{0};
    uint64_t full{0};
    uint64_t fullBytes{0};
    uint64_t lost{0};
    uint64_t lostBytes{0};
    uint32_t mostBytes{0};
    uint32_t mostPackets{0};
    ns3::Ptr<ns3::Queue<ns3::Packet>> queue;
};

// Packets that devices beyond the network would not take, and those that came from there and are for no node.
struct Troubles
{
    uint64_t unsent{0};
    uint64_t strangers{0};
};

// How a vertex sends over a link: the address of its far end, and the interface.
struct Way
{
    ns3::Ipv4Address next;
    uint32_t interface{0};
};

class Network
{
  public:
    // Builds the graph of `spec`; throws std::runtime_error for what it does not know.
    Network(const Json& spec, Outbox& outbox);
    ~Network();

    // Packets for `address` go to vertex `to`, and leave there through one of its interfaces.
    void Lead(uint32_t to, ns3::Ipv4Address address, uint32_t interface);

    // Sends a packet of the driver's.
    void Send(uint32_t number, uint32_t from, uint32_t to, uint32_t wireBytes, uint32_t dscp);

    // Sends a packet of a background entry.
    void SendBackground(uint32_t entry, uint32_t from, uint32_t to, uint32_t wireBytes, uint32_t dscp);

    // What waits at each link: [[packets, bytes], …].
    std::string Queues() const;

    // Accounts of the links: [{"packets":…}, …].
    std::string Links() const;

    // Packets of a background entry that arrived, and that were dropped.
    std::pair<uint64_t, uint64_t> BackgroundFate(uint32_t entry) const;

    // The scenario's time 0 is this moment of ns-3.
    void SetStart(ns3::Time start)
    {
        m_start = start;
    }

    // The scenario's time.
    int64_t Now() const;

    ns3::NodeContainer vertices;
    Troubles troubles;

  private:
    void BuildWire(const Json& link, size_t number);
    void BuildMedia(const Json& links);
    void JoinMedium(const Json& links, const std::vector<size_t>& members);
    void Route(const Json& routes);
    void LeadTo(uint32_t to, ns3::Ipv4Address address);
    void OpenSockets();
    void WatchStrangers();
    void Watch(size_t number, const ns3::Ptr<ns3::Queue<ns3::Packet>>& queue);
    void WatchReceiver(size_t number, const ns3::Ptr<ns3::NetDevice>& device);
    uint32_t Interface(const ns3::Ptr<ns3::NetDevice>& device) const;
    void Receive(ns3::Ptr<ns3::Socket> socket);
    void ReceiveBackground(ns3::Ptr<ns3::Socket> socket);
    void Drop(size_t number, Reason reason, ns3::Ptr<const ns3::Packet> packet);

    Outbox& m_outbox;
    ns3::Time m_start;
    std::vector<Account> m_accounts;
    std::vector<Way> m_ways;
    std::vector<uint32_t> m_from;
    std::vector<uint32_t> m_to;
    std::vector<ns3::Ipv4Address> m_known;
    // m_routes[v][d] is the number of the link that leads on from vertex v towards vertex d.
    std::vector<std::vector<uint32_t>> m_routes;
    // Below IP, a packet takes as much more on a wire than a point-to-point device of ns-3 gives it.
    uint32_t m_paddingBytes;
    std::vector<ns3::Ptr<ns3::Socket>> m_sockets;
    std::vector<ns3::Ptr<ns3::Socket>> m_background;
    std::vector<std::pair<uint64_t, uint64_t>> m_fates;
    ns3::Ipv4AddressHelper m_addresses;
    std::unique_ptr<Radio> m_radio;
};

} // namespace tcpsbed

#endif
