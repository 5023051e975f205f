// SPDX-License-Identifier: GPL-2.0-only

#include "outbox.h"

#include <cerrno>
#include <cstdlib>
#include <unistd.h>

namespace tcpsbed
{

Outbox::Outbox(std::function<void()> first)
    : m_first(std::move(first))
{
}

void
Outbox::OnFirst(std::function<void()> first)
{
    m_first = std::move(first);
}

void
Outbox::Arrived(int64_t at, uint32_t number)
{
    Add({at, number, 0, 0});
}

void
Outbox::Dropped(int64_t at, uint32_t number, int link, Reason reason)
{
    Add({at, number, link, static_cast<int>(reason)});
}

void
Outbox::Add(const News& news)
{
    m_news.push_back(news);
    if (m_news.size() == 1)
    {
        m_first();
    }
}

void
Outbox::Tell()
{
    std::string text;
    for (size_t begin = 0; begin < m_news.size();)
    {
        size_t end = begin;
        while (end < m_news.size() && m_news[end].at == m_news[begin].at)
        {
            end++;
        }
        text += Line(m_news[begin].at, begin, end);
        begin = end;
    }
    m_news.clear();
    if (!text.empty())
    {
        WriteOut(text);
    }
}

void
Outbox::TellMoment(int64_t at)
{
    const std::string line = Line(at, 0, m_news.size());
    m_news.clear();
    WriteOut(line);
}

std::string
Outbox::Line(int64_t at, size_t begin, size_t end) const
{
    std::string arrived;
    std::string dropped;
    for (size_t i = begin; i < end; i++)
    {
        const News& n = m_news[i];
        std::string& list = n.reason == 0 ? arrived : dropped;
        list += list.empty() ? "" : ",";
        list += n.reason == 0 ? std::to_string(n.number)
                              : "[" + std::to_string(n.number) + "," + std::to_string(n.link) + "," +
                                    std::to_string(n.reason) + "]";
    }
    return "{\"at\":" + std::to_string(at) + ",\"arrived\":[" + arrived + "],\"dropped\":[" + dropped + "]}\n";
}

void
WriteOut(const std::string& text)
{
    for (size_t done = 0; done < text.size();)
    {
        const ssize_t n = write(STDOUT_FILENO, text.data() + done, text.size() - done);
        if (n < 0 && errno != EINTR)
        {
            std::exit(0);
        }
        done += n > 0 ? n : 0;
    }
}

} // namespace tcpsbed
