// SPDX-License-Identifier: GPL-2.0-only

#include "attach.h"

#include "lines.h"

#include "ns3/core-module.h"
#include "ns3/csma-module.h"
#include "ns3/fd-net-device-module.h"
#include "ns3/tap-bridge-module.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

using namespace ns3;

namespace tcpsbed
{

namespace
{

// What the side of a vertex calls itself; nobody is told.
constexpr const char* kRouter = "192.0.2.1";
// By which TapBridge knows that what comes is the descriptor that it waits for.
constexpr uint32_t kTapMagic = 95549;
// The longest wait for somebody who hands a device over, after which the clock is looked at.
constexpr int64_t kLookNs = 20000000;
// FdNetDevice drops without a word what comes while so many packets wait to be simulated; a run that is so far behind the
// clock ends before.
constexpr uint32_t kMostWaiting = 10000000;

// Room for one descriptor.
union Control
{
    cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

msghdr
MessageOf(iovec& part, Control& control)
{
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    return message;
}

std::runtime_error
Failed(const std::string& what)
{
    return std::runtime_error(what + ": " + std::strerror(errno));
}

// The number and the descriptor that came over a connection; {0, -1} if they did not.
std::pair<uint16_t, int>
HandedOver(int connection)
{
    uint16_t number = 0;
    iovec part{&number, sizeof(number)};
    Control control{};
    msghdr message = MessageOf(part, control);
    const ssize_t length = recvmsg(connection, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    const cmsghdr* header = length < 0 ? nullptr : CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
    {
        return {0, -1};
    }
    int device;
    std::memcpy(&device, CMSG_DATA(header), sizeof(device));
    if (length != sizeof(number))
    {
        close(device);
        return {0, -1};
    }
    return {number, device};
}

bool
IsTap(int device)
{
    ifreq asked{};
    return ioctl(device, TUNGETIFF, &asked) == 0 && (asked.ifr_flags & IFF_TAP) != 0;
}

// Hands a descriptor to the socket whose address TapBridge has written as ":01:00:…".
int
HandOn(int device, const char* written)
{
    sockaddr_un to{};
    socklen_t length = 0;
    for (; *written == ':' && length < sizeof(to); written += 3)
    {
        reinterpret_cast<uint8_t*>(&to)[length++] = static_cast<uint8_t>(std::strtoul(written + 1, nullptr, 16));
    }
    uint32_t magic = kTapMagic;
    iovec part{&magic, sizeof(magic)};
    Control control{};
    msghdr message = MessageOf(part, control);
    message.msg_name = &to;
    message.msg_namelen = length;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &device, sizeof(device));
    const int out = socket(AF_UNIX, SOCK_DGRAM, 0);
    return out >= 0 && sendmsg(out, &message, 0) == sizeof(magic) ? 0 : 1;
}

// Ends a connection, and says why.
void
SendAway(int guest, const char* why)
{
    close(guest);
    std::cerr << "tcpsbed-ns3: a connection for devices was dropped: " << why << std::endl;
}

// Gives a vertex an interface at a device, with the node behind it as the only neighbour.
uint32_t
AddInterface(const Ptr<Node>& vertex, const Ptr<NetDevice>& device, Ipv4Address node, Mac48Address mac)
{
    Ptr<Ipv4L3Protocol> stack = vertex->GetObject<Ipv4L3Protocol>();
    const uint32_t interface = stack->AddInterface(device);
    stack->AddAddress(interface, Ipv4InterfaceAddress(kRouter, "255.255.255.255"));
    stack->SetUp(interface);
    Ptr<ArpCache> cache = stack->GetInterface(interface)->GetArpCache();
    const Callback<void> introduce([cache, node, mac]() {
        ArpCache::Entry* known = cache->Lookup(node);
        ArpCache::Entry* entry = known ? known : cache->Add(node);
        entry->SetMacAddress(mac);
        entry->MarkPermanent();
    });
    introduce();
    // A device that comes up has its neighbours forgotten first.
    device->AddLinkChangeCallback(introduce);
    return interface;
}

} // namespace

Attachment::Attachment(const Json& spec)
    : m_bridge(spec["how"].Text() == "bridge"),
      m_gateway(spec["gateway"].Text().c_str())
{
    for (const Json& node : spec["nodes"].List())
    {
        m_ends.push_back({Ipv4Address(node["address"].Text().c_str()), Mac48Address(node["mac"].Text().c_str())});
    }
    const std::string place = spec["taps"].Text();
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    if (place.size() >= sizeof(at.sun_path))
    {
        throw std::runtime_error("the path of the socket for devices is too long");
    }
    std::strcpy(at.sun_path, place.c_str());
    m_place = place;
    m_listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const auto* address = reinterpret_cast<const sockaddr*>(&at);
    if (m_listener < 0 || bind(m_listener, address, sizeof(at)) != 0 ||
        listen(m_listener, SOMAXCONN) != 0)
    {
        throw Failed("no socket for devices");
    }
}

Attachment::~Attachment()
{
    HangUp();
    for (const int held : m_namespaces)
    {
        close(held);
    }
}

// Whoever else comes meanwhile, or says nothing, is sent away; nodes are waited for until the start.
void
Attachment::Receive(int64_t startNs)
{
    std::vector<int> guests;
    const auto missing = [this] {
        return std::find_if(m_ends.begin(), m_ends.end(), [](const End& end) { return end.device < 0; });
    };
    do
    {
        Admit(guests, std::clamp<int64_t>(startNs - MonotonicNs(), 0, kLookNs));
    } while (missing() != m_ends.end() && MonotonicNs() < startNs);
    for (const int guest : guests)
    {
        SendAway(guest, "it handed nothing over");
    }
    if (missing() != m_ends.end())
    {
        const auto number = missing() - m_ends.begin();
        throw std::runtime_error("the device of node " + std::to_string(number) + " did not come before the start");
    }
    HangUp();
}

// Lets in who has come, waits until one of them or somebody new says something, and hears those that do.
void
Attachment::Admit(std::vector<int>& guests, int64_t waitNs)
{
    for (int guest; (guest = accept4(m_listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;)
    {
        guests.push_back(guest);
    }
    std::vector<pollfd> polls{{m_listener, POLLIN, 0}};
    for (const int guest : guests)
    {
        polls.push_back({guest, POLLIN, 0});
    }
    const timespec wait{0, waitNs};
    ppoll(polls.data(), polls.size(), &wait, nullptr);
    guests.clear();
    for (size_t i = 1; i < polls.size(); i++)
    {
        if (polls[i].revents == 0)
        {
            guests.push_back(polls[i].fd);
        }
        else
        {
            Hear(polls[i].fd);
        }
    }
}

// Takes the device that somebody hands over, if it is that of a node which has none yet.
void
Attachment::Hear(int guest)
{
    const auto [number, device] = HandedOver(guest);
    if (device < 0 || number >= m_ends.size() || m_ends[number].device >= 0 || !IsTap(device))
    {
        if (device >= 0)
        {
            close(device);
        }
        return SendAway(guest, "what came is not the device of a node that has none");
    }
    close(guest);
    m_ends[number].device = device;
    // The threads of ns-3 that read wait for what comes.
    fcntl(device, F_SETFL, fcntl(device, F_GETFL) & ~O_NONBLOCK);
    // A node that ends first must not take its device away from under a packet that is still in flight.
    const int held = ioctl(device, TUNGETDEVNETNS);
    if (held >= 0)
    {
        m_namespaces.push_back(held);
    }
}

// Nobody else is let in.
void
Attachment::HangUp()
{
    if (m_listener >= 0)
    {
        close(m_listener);
        unlink(m_place.c_str());
        m_listener = -1;
    }
}

void
Attachment::Join(Network& network, int64_t startNs)
{
    Receive(startNs);
    for (uint32_t v = 0; v < m_ends.size(); v++)
    {
        const End& end = m_ends[v];
        Ptr<Node> vertex = network.vertices.Get(v);
        Ptr<NetDevice> device = m_bridge ? Bridge(vertex, end) : Describe(network, vertex, end);
        network.Lead(v, end.address, AddInterface(vertex, device, end.address, end.mac));
    }
}

// ns-3 reads and writes the descriptor.
Ptr<NetDevice>
Attachment::Describe(Network& network, const Ptr<Node>& vertex, const End& end) const
{
    Ptr<FdNetDevice> device = CreateObject<FdNetDevice>();
    device->SetAddress(m_gateway);
    device->SetAttribute("RxQueueSize", UintegerValue(kMostWaiting));
    device->SetFileDescriptor(end.device);
    device->TraceConnectWithoutContext("MacTxDrop",
                                       Callback<void, Ptr<const Packet>>([&network](Ptr<const Packet>) { network.troubles.unsent++; }));
    vertex->AddDevice(device);
    return device;
}

// TapBridge reads and writes it, in the place of a node of ns-3 that has nothing else.
Ptr<NetDevice>
Attachment::Bridge(const Ptr<Node>& vertex, const End& end) const
{
    CsmaHelper cable;
    cable.DisableFlowControl();
    cable.SetChannelAttribute("DataRate", StringValue("100Gbps"));
    cable.SetChannelAttribute("Delay", StringValue("0ns"));
    Ptr<Node> ghost = CreateObject<Node>();
    NetDeviceContainer ends = cable.Install(NodeContainer(ghost, vertex));
    ends.Get(0)->SetAddress(end.mac);
    ends.Get(1)->SetAddress(m_gateway);
    Ptr<TapBridge> bridge = CreateObject<TapBridge>();
    bridge->SetMode(TapBridge::CONFIGURE_LOCAL);
    // See execlp: the device is known by its descriptor, and has its addresses already.
    bridge->SetAttribute("DeviceName", StringValue(std::to_string(end.device)));
    bridge->SetAttribute("IpAddress", Ipv4AddressValue(end.address));
    bridge->SetAttribute("Netmask", Ipv4MaskValue("255.255.0.0"));
    ghost->AddDevice(bridge);
    bridge->SetBridgedNetDevice(ends.Get(0));
    return ends.Get(1);
}

} // namespace tcpsbed

// TapBridge gets its device from another program, ns3-tap-creator, which it starts by a path that was fixed when ns-3 was
// compiled; that of Debian's packages is nowhere. Here the device is there already: in the place of that program, the child
// that TapBridge has made hands it on ("-d" with the descriptor, "-p" with where to). Other programs are started as ever.
extern "C" int
execlp(const char* file, const char* arg, ...) noexcept
{
    std::vector<char*> words{const_cast<char*>(arg)};
    va_list rest;
    va_start(rest, arg);
    while (words.back())
    {
        words.push_back(va_arg(rest, char*));
    }
    va_end(rest);
    if (std::strstr(file, "tap-creator") == nullptr)
    {
        return execvp(file, words.data());
    }
    const char* device = nullptr;
    const char* path = nullptr;
    for (const char* word : words)
    {
        device = word && std::strncmp(word, "-d", 2) == 0 ? word + 2 : device;
        path = word && std::strncmp(word, "-p", 2) == 0 ? word + 2 : path;
    }
    _exit(device && path ? tcpsbed::HandOn(std::atoi(device), path) : 1);
}
