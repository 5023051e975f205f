// SPDX-License-Identifier: GPL-2.0-only
//
// What is told to the driver: which of its packets arrived or were dropped, and when.

#ifndef TCPSBED_OUTBOX_H
#define TCPSBED_OUTBOX_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tcpsbed
{

// Reasons of drops, as the driver numbers them.
enum class Reason
{
    kFull = 1,
    kLoss = 3,
    kNoRoute = 5,
};

class Outbox
{
  public:
    // `first` is called when something is there to be told after nothing was.
    explicit Outbox(std::function<void()> first = [] {});

    // At this simulated moment, from the scenario's start.
    void Arrived(int64_t at, uint32_t number);
    void Dropped(int64_t at, uint32_t number, int link, Reason reason);

    bool Empty() const
    {
        return m_news.empty();
    }

    void OnFirst(std::function<void()> first);

    // Writes a line for each moment: {"at":5000,"arrived":[1,2],"dropped":[[3,0,1]]}.
    void Tell();

    // The same for one moment, also if nothing happened in it.
    void TellMoment(int64_t at);

  private:
    struct News
    {
        int64_t at;
        uint32_t number;
        int link;
        int reason; // 0: arrived
    };

    void Add(const News& news);
    std::string Line(int64_t at, size_t begin, size_t end) const;

    std::vector<News> m_news;
    std::function<void()> m_first;
};

// Writes all of a text to standard output; ends the program if nobody reads it any more.
void WriteOut(const std::string& text);

} // namespace tcpsbed

#endif
