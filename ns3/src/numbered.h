// SPDX-License-Identifier: GPL-2.0-only
//
// Which packet of the driver's a packet of ns-3 stands for.

#ifndef TCPSBED_NUMBERED_H
#define TCPSBED_NUMBERED_H

#include "ns3/header.h"
#include "ns3/packet.h"
#include "ns3/tag.h"

#include <algorithm>

namespace tcpsbed
{

// Bit that marks the numbers of background packets; the others are the driver's.
constexpr uint32_t kBackground = 0x80000000;
// What a point-to-point device, IPv4 and UDP add to a payload: 2 + 20 + 8.
constexpr uint32_t kHeaderBytes = 30;
// A payload begins with a number.
constexpr uint32_t kNumberBytes = 4;

// The number as the first bytes of the payload: it arrives wherever the payload does.
class Number : public ns3::Header
{
  public:
    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId id =
            ns3::TypeId("tcpsbed::Number").SetParent<ns3::Header>().AddConstructor<Number>();
        return id;
    }

    ns3::TypeId GetInstanceTypeId() const override
    {
        return GetTypeId();
    }

    uint32_t GetSerializedSize() const override
    {
        return kNumberBytes;
    }

    void Serialize(ns3::Buffer::Iterator at) const override
    {
        at.WriteHtonU32(value);
    }

    uint32_t Deserialize(ns3::Buffer::Iterator at) override
    {
        value = at.ReadNtohU32();
        return kNumberBytes;
    }

    void Print(std::ostream& out) const override
    {
        out << value;
    }

    uint32_t value{0};
};

// The number beside the packet: a queue that drops it sees the headers of all layers first.
class Label : public ns3::Tag
{
  public:
    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId id = ns3::TypeId("tcpsbed::Label").SetParent<ns3::Tag>().AddConstructor<Label>();
        return id;
    }

    ns3::TypeId GetInstanceTypeId() const override
    {
        return GetTypeId();
    }

    uint32_t GetSerializedSize() const override
    {
        return kNumberBytes;
    }

    void Serialize(ns3::TagBuffer at) const override
    {
        at.WriteU32(value);
    }

    void Deserialize(ns3::TagBuffer at) override
    {
        value = at.ReadU32();
    }

    void Print(std::ostream& out) const override
    {
        out << value;
    }

    uint32_t value{0};
};

// A packet that takes `wireBytes` on a point-to-point link.
inline ns3::Ptr<ns3::Packet>
MakeNumbered(uint32_t number, uint32_t wireBytes)
{
    const uint32_t payload = std::max(wireBytes, kHeaderBytes + kNumberBytes) - kHeaderBytes;
    ns3::Ptr<ns3::Packet> packet = ns3::Create<ns3::Packet>(payload - kNumberBytes);
    Number header;
    header.value = number;
    packet->AddHeader(header);
    Label label;
    label.value = number;
    packet->AddPacketTag(label);
    return packet;
}

} // namespace tcpsbed

#endif
