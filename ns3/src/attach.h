// SPDX-License-Identifier: GPL-2.0-only
//
// Devices of the kernel as parts of the network: what the nodes in namespaces send enters ns-3 itself.
//
//   descriptor   namespace ══ TAP ══ FdNetDevice ── vertex
//   bridge       namespace ══ TAP ══ TapBridge ── a node of its own ── CSMA ── vertex
//
// Nodes hand their descriptors over at a Unix socket, each with its number in two bytes. Every vertex is a router for the
// node behind it.

#ifndef TCPSBED_ATTACH_H
#define TCPSBED_ATTACH_H

#include "json.h"
#include "network.h"

#include <string>
#include <vector>

namespace tcpsbed
{

class Attachment
{
  public:
    // Listens where nodes hand their devices over; throws std::runtime_error if it cannot.
    explicit Attachment(const Json& spec);
    ~Attachment();
    Attachment(const Attachment&) = delete;
    Attachment& operator=(const Attachment&) = delete;

    // Takes the devices, each until the start (CLOCK_MONOTONIC) at the latest, and joins them to their vertices; throws
    // std::runtime_error if one did not come.
    void Join(Network& network, int64_t startNs);

  private:
    struct End
    {
        ns3::Ipv4Address address;
        ns3::Mac48Address mac;
        int device{-1};
    };

    void Receive(int64_t startNs);
    void Admit(std::vector<int>& guests, int64_t waitNs);
    void Hear(int guest);
    void HangUp();
    ns3::Ptr<ns3::NetDevice> Describe(Network& network, const ns3::Ptr<ns3::Node>& vertex, const End& end) const;
    ns3::Ptr<ns3::NetDevice> Bridge(const ns3::Ptr<ns3::Node>& vertex, const End& end) const;

    bool m_bridge;
    std::string m_place;
    ns3::Mac48Address m_gateway;
    std::vector<End> m_ends;
    int m_listener{-1};
    std::vector<int> m_namespaces;
};

} // namespace tcpsbed

#endif
