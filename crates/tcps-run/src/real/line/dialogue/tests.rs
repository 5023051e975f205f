use super::*;
use proptest::prelude::*;
use tcps_core::time::MS;

const DELAY_NS: Time = 400_000;

/// A board whose clock is ahead by this many microseconds.
const AHEAD_US: i64 = 7_000_000;

fn ride(dialogue: &mut Dialogue, now: Time, job: u32) -> u16 {
    dialogue.ride(now, &BoardRequest { job, channel: 0, bytes: &[1, 2, 3, 4] }, &mut Vec::new())
}

/// The frame with which the board answers.
fn answer(number: u16, of: u16, entry_ns: Time, work_ns: u32) -> Vec<u8> {
    let entry_us = (entry_ns / 1_000 + AHEAD_US) as u32;
    let (mut body, mut line) = (Vec::new(), Vec::new());
    Repr::Answer { channel: 0, of, entry_us, work_ns, payload: &[9] }.emit(number, &mut body);
    board::write(&body, &mut line);
    line
}

fn heard(dialogue: &mut Dialogue, now: Time, line: &[u8]) -> Vec<BoardEvent> {
    let mut told = Vec::new();
    dialogue.receive(now, line, &mut told);
    let events = told.into_iter().filter_map(|t| match t.1 {
        LineEvent::BoardEvent(event) => Some(event),
        _ => None,
    });
    events.collect()
}

#[test]
fn moments_of_the_board_are_told_in_our_time() {
    let mut dialogue = Dialogue::default();
    for i in 0..1_000 {
        let sent = i * MS;
        let of = ride(&mut dialogue, sent, i as u32);
        let (entry, work) = (sent + DELAY_NS, 50_000);
        let back = entry + Time::from(work) + DELAY_NS;
        let events = heard(&mut dialogue, back, &answer(i as u16, of, entry, work));
        let [BoardEvent::Answered { job, entry_ns, exit_ns, bytes }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!((*job, &bytes[..]), (i as u32, &[9][..]));
        assert!((entry_ns - entry).abs() <= 2_000 && exit_ns - entry_ns == 50_000, "{i}: {entry_ns} {entry}");
    }
    let bound = dialogue.clock_bound_ns().unwrap();
    assert!((DELAY_NS - 10_000..DELAY_NS + 10_000).contains(&bound), "{bound}");
    assert_eq!(dialogue.damage(), Damage::default());
}

#[test]
fn an_answer_tells_that_earlier_samples_are_lost() {
    let mut dialogue = Dialogue::default();
    let numbers: Vec<u16> = (0..3).map(|job| ride(&mut dialogue, 0, job)).collect();
    let events = heard(&mut dialogue, MS, &answer(5, numbers[2], MS / 2, 0));
    assert_eq!(events[..2], [BoardEvent::Lost { job: 0 }, BoardEvent::Lost { job: 1 }]);
    assert!(matches!(events[2], BoardEvent::Answered { job: 2, .. }));
    assert_eq!(heard(&mut dialogue, MS, &answer(6, numbers[0], MS / 2, 0)), [], "it is too late for that");
    assert_eq!(heard(&mut dialogue, MS, &answer(9, numbers[0], MS / 2, 0)), []);
    assert_eq!((dialogue.late(), dialogue.damage().missing, dialogue.damage().unknown), (2, 2, 0));
}

#[test]
fn what_no_answer_comes_for_is_given_up_in_time_wherever_it_is() {
    let mut dialogue = Dialogue::default();
    let number = ride(&mut dialogue, 0, 7);
    dialogue.written(number, MS);
    let mut told = Vec::new();
    assert_eq!(dialogue.due(), Some(LOST_NS), "time on the line counts");
    dialogue.give_up(Some(LOST_NS - 1), &mut told);
    assert_eq!(told, []);
    dialogue.give_up(Some(LOST_NS), &mut told);
    assert_eq!(told, [(0, LineEvent::BoardEvent(BoardEvent::Lost { job: 7 }))]);
    assert_eq!((dialogue.due(), dialogue.riding()), (None, 0));
}

#[test]
fn numbers_that_jump_at_will_are_counted_without_end() {
    let mut dialogue = Dialogue::default();
    for i in 0..200_000u32 {
        dialogue.number(i.wrapping_mul(0x7fff) as u16);
    }
    assert_eq!(dialogue.damage().missing, u32::MAX);
}

/// What happens on a line.
#[derive(Debug, Clone)]
enum Act {
    /// A sample goes down.
    BoardRequest,
    /// The board answers the sample so many behind the oldest that it has.
    Answer { skip: usize },
    /// It does so, and the line damages a byte.
    Damaged { at: prop::sample::Index, by: u8 },
    /// It says an answer again.
    Again,
    /// The line makes noise.
    Noise(Vec<u8>),
    /// Nothing for some time.
    Wait(Time),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => Just(Act::BoardRequest),
        6 => (0usize..3).prop_map(|skip| Act::Answer { skip }),
        1 => (any::<prop::sample::Index>(), 1u8..).prop_map(|(at, by)| Act::Damaged { at, by }),
        1 => Just(Act::Again),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Act::Noise),
        2 => (0..300 * MS).prop_map(Act::Wait),
    ]
}

fn answered(event: &BoardEvent) -> Option<u32> {
    match event {
        BoardEvent::Answered { job, .. } => Some(*job),
        BoardEvent::Lost { .. } | BoardEvent::Safe(_) => None,
    }
}

/// A dialogue, and what a board at the far end of its line has.
#[derive(Default)]
struct Conversation {
    dialogue: Dialogue,
    now: Time,
    number: u16,
    /// Numbers and jobs of the samples that the board has.
    there: VecDeque<(u16, u32)>,
    last: Vec<u8>,
    jobs: u32,
    events: Vec<BoardEvent>,
    /// Jobs that were answered in time, and undamaged.
    answered: Vec<u32>,
}

impl Conversation {
    fn act(&mut self, act: Act) {
        match act {
            Act::BoardRequest => {
                let number = ride(&mut self.dialogue, self.now, self.jobs);
                self.dialogue.written(number, self.now);
                self.there.push_back((number, self.jobs));
                self.jobs += 1;
            }
            Act::Answer { skip } => {
                let Some((of, job)) = self.there.drain(..(skip + 1).min(self.there.len())).next_back() else {
                    return;
                };
                let waited_for = self.dialogue.riding.iter().any(|r| r.job == job);
                self.answered.extend(waited_for.then_some(job));
                self.last = self.frame(of);
                self.hears(&[&[0], &self.last.clone()[..]].concat()); // the zero ends what noise has begun
            }
            Act::Damaged { at, by } => {
                let Some((of, _)) = self.there.pop_front() else { return };
                let mut frame = self.frame(of);
                let i = at.index(frame.len());
                frame[i] ^= by;
                self.hears_what_may_be_chance(&frame);
            }
            Act::Again => self.hears(&self.last.clone()),
            Act::Noise(bytes) => self.hears_what_may_be_chance(&bytes),
            Act::Wait(time) => self.now += time,
        }
        let mut told = Vec::new();
        self.dialogue.give_up(Some(self.now), &mut told);
        self.take(told);
    }

    fn frame(&mut self, of: u16) -> Vec<u8> {
        self.number = self.number.wrapping_add(1);
        self.now += DELAY_NS;
        answer(self.number, of, self.now - DELAY_NS / 2, 50_000)
    }

    /// Damaged bytes may have a right checksum: then they are an answer as any. The zero ends them where damage took theirs.
    fn hears_what_may_be_chance(&mut self, line: &[u8]) {
        let before = self.events.len();
        self.hears(&[line, &[0]].concat());
        let answered = self.events[before..].iter().filter_map(answered);
        self.answered.extend(answered);
    }

    fn hears(&mut self, line: &[u8]) {
        let mut told = Vec::new();
        self.dialogue.receive(self.now, line, &mut told);
        self.take(told);
    }

    fn take(&mut self, told: Vec<(usize, LineEvent)>) {
        for (_, told) in told {
            if let LineEvent::BoardEvent(event) = told {
                if let BoardEvent::Answered { entry_ns, exit_ns, .. } = event {
                    assert!(0 <= entry_ns && entry_ns <= exit_ns && exit_ns <= self.now);
                }
                self.events.push(event);
            }
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_each_sample_is_told_once_in_order_and_answers_arrive(
        acts in proptest::collection::vec(act(), 0..200),
    ) {
        let mut conversation = Conversation::default();
        acts.into_iter().for_each(|act| conversation.act(act));
        let mut told = Vec::new();
        conversation.dialogue.give_up(None, &mut told);
        conversation.take(told);
        let Conversation { events, answered, jobs, .. } = conversation;
        let told: Vec<u32> = events.iter().filter_map(|n| match n {
            BoardEvent::Answered { job, .. } | BoardEvent::Lost { job } => Some(*job),
            BoardEvent::Safe(_) => None,
        }).collect();
        prop_assert_eq!(told, (0..jobs).collect::<Vec<u32>>());
        let arrived: Vec<u32> = events.iter().filter_map(self::answered).collect();
        prop_assert_eq!(arrived, answered);
    }

    #[test]
    fn no_bytes_make_it_panic(line in proptest::collection::vec(any::<u8>(), 0..300), rides in 0u32..20) {
        let mut dialogue = Dialogue::default();
        (0..rides).for_each(|job| {
            ride(&mut dialogue, 0, job);
        });
        heard(&mut dialogue, MS, &line);
        prop_assert!(dialogue.riding() <= rides as usize);
    }
}
