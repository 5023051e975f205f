// SPDX-License-Identifier: GPL-2.0-only
//
// The core network behind a base station: its gateway, a wire to the vertex behind it, tunnels to the mobiles.

#ifndef TCPSBED_CELLULAR_H
#define TCPSBED_CELLULAR_H

#include "radio.h"

#include "ns3/epc-pgw-application.h"
#include "ns3/point-to-point-epc-helper.h"

namespace tcpsbed
{

class Cellular : public Radio
{
  public:
    void Route(size_t link, ns3::Ipv4Address known) override;

  protected:
    // Joins the core network to the vertex that all links lead to; throws std::runtime_error if its gateway is unknown.
    Cellular(const ns3::Ptr<ns3::PointToPointEpcHelper>& core,
             const std::vector<Pair>& pairs,
             const ns3::NodeContainer& vertices,
             std::vector<Way>& ways);

    // A mobile with its device gets an address and its ways; it can attach then.
    void Subscribe(const Pair& pair,
                   const ns3::Ptr<ns3::Node>& mobile,
                   const ns3::Ptr<ns3::NetDevice>& device,
                   uint64_t imsi,
                   std::vector<Way>& ways);

    ns3::Ptr<ns3::PointToPointEpcHelper> m_core;

  private:
    void JoinVertex(const ns3::Ptr<ns3::Node>& vertex, const std::vector<Pair>& pairs, std::vector<Way>& ways);

    ns3::Ipv4Address m_behind;
    uint32_t m_behindInterface{0};
    uint32_t m_tunnelInterface{0};
    ns3::Ptr<ns3::EpcPgwApplication> m_tunnel;
    std::map<size_t, uint64_t> m_imsi;
};

} // namespace tcpsbed

#endif
