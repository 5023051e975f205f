// SPDX-License-Identifier: GPL-2.0-only

#include "lines.h"

#include <cerrno>
#include <ctime>
#include <poll.h>
#include <unistd.h>

namespace tcpsbed
{

namespace
{

constexpr int64_t kSecond = 1000000000;
constexpr size_t kChunk = 1 << 16;

bool
Readable(int64_t ns)
{
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const timespec limit{ns / kSecond, ns % kSecond};
    return ppoll(&input, 1, &limit, nullptr) > 0;
}

} // namespace

std::optional<Json>
Lines::Take()
{
    const size_t end = m_text.find('\n', m_begin);
    if (end == std::string::npos)
    {
        return std::nullopt;
    }
    const std::string line = m_text.substr(m_begin, end - m_begin);
    m_begin = end + 1;
    if (m_begin == m_text.size() || m_begin > kChunk)
    {
        m_text.erase(0, m_begin);
        m_begin = 0;
    }
    return Json::Read(line);
}

bool
Lines::Fill()
{
    char chunk[kChunk];
    const ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));
    if (n <= 0)
    {
        m_ended = m_ended || n == 0 || errno != EINTR;
        return false;
    }
    m_text.append(chunk, n);
    return true;
}

std::optional<Json>
Lines::Next()
{
    while (true)
    {
        std::optional<Json> line = Take();
        if (line || m_ended)
        {
            return line;
        }
        Fill();
    }
}

std::optional<Json>
Lines::Poll()
{
    std::optional<Json> line = Take();
    while (!line && !m_ended && Readable(0) && Fill())
    {
        line = Take();
    }
    return line;
}

void
Lines::Wait(int64_t ns)
{
    if (ns > 0)
    {
        Readable(ns);
    }
}

int64_t
MonotonicNs()
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * kSecond + now.tv_nsec;
}

} // namespace tcpsbed
