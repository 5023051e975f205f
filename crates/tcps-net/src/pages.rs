//! What a user of the web asks for: pages of a main object and embedded ones, with time to read between them.
//!
//! ```text
//!  think │ request ─► main object │ parse │ request ─► object │ request ─► object │ think │ ...
//! ```
//! Only how many bytes and how long; the connections are made by the driver (design: models).

use tcps_core::{seed::Stream, time::Time};
use tcps_plan::net::PagesSpec;

/// Draws that means are estimated from.
const SURVEY: u32 = 4_096;
/// Largest transfer in bytes.
const MOST_BYTES: f64 = 1e12;

/// A request and what answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes of the request.
    pub request_bytes: u64,
    /// Bytes of the answer.
    pub answer_bytes: u64,
}

/// A user's pages, one after the other.
#[derive(Debug)]
pub struct Pages {
    spec: PagesSpec,
    stream: Stream,
    /// Embedded objects of this page that are still to be asked for.
    left: u32,
}

impl Pages {
    /// Pages drawn from a stream.
    pub fn new(spec: &PagesSpec, stream: Stream) -> Self {
        Self { spec: spec.clone(), stream, left: 0 }
    }

    /// The main object of the next page.
    pub fn begin(&mut self) -> Transfer {
        self.left = self.spec.embedded.draw(&mut self.stream).clamp(0.0, 1e6) as u32;
        let answer_bytes = bytes(self.spec.main.draw(&mut self.stream));
        Transfer { request_bytes: bytes(self.spec.request.draw(&mut self.stream)), answer_bytes }
    }

    /// The next embedded object of the page; `None` when there are no more.
    pub fn embedded(&mut self) -> Option<Transfer> {
        self.left = self.left.checked_sub(1)?;
        let answer_bytes = bytes(self.spec.object.draw(&mut self.stream));
        Some(Transfer { request_bytes: bytes(self.spec.request.draw(&mut self.stream)), answer_bytes })
    }

    /// Whether embedded objects of this page are still to be asked for.
    pub fn has_more(&self) -> bool {
        self.left > 0
    }

    /// Time between the main object and the embedded ones.
    pub fn parse_ns(&mut self) -> Time {
        (self.spec.parse.draw(&mut self.stream) * 1e9) as Time
    }

    /// Seconds of reading between two pages.
    pub fn think_s(&mut self) -> f64 {
        self.spec.think.draw(&mut self.stream)
    }

    /// Mean bytes that answer a page's requests, and mean seconds of reading.
    pub fn means(spec: &PagesSpec, stream: Stream) -> (f64, f64) {
        let mut pages = Self::new(spec, stream);
        let (mut sum_bytes, mut sum_s) = (0.0, 0.0);
        for _ in 0..SURVEY {
            sum_bytes += pages.begin().answer_bytes as f64;
            while let Some(transfer) = pages.embedded() {
                sum_bytes += transfer.answer_bytes as f64;
            }
            sum_s += pages.think_s();
        }
        (sum_bytes / f64::from(SURVEY), sum_s / f64::from(SURVEY))
    }
}

/// At least a byte, so that something is asked and answered.
fn bytes(x: f64) -> u64 {
    x.clamp(1.0, MOST_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcps_plan::net::Law;

    // [Mah 1997] [3GPP TR 25.892 §A.2]
    #[test]
    fn a_page_is_a_main_object_and_its_embedded_ones() {
        let constant = |value| Law::Constant { value };
        let spec = PagesSpec {
            request: constant(350.0),
            main: constant(10_000.0),
            embedded: constant(2.0),
            object: constant(500.0),
            parse: constant(0.13),
            think: constant(30.0),
        };
        let mut pages = Pages::new(&spec, Stream::new(1, "user"));
        for _ in 0..3 {
            assert_eq!(pages.begin(), Transfer { request_bytes: 350, answer_bytes: 10_000 });
            assert_eq!(pages.parse_ns(), 130_000_000);
            let embedded = Some(Transfer { request_bytes: 350, answer_bytes: 500 });
            let told = [(); 3].map(|()| (pages.has_more(), pages.embedded()));
            assert_eq!(told, [(true, embedded), (true, embedded), (false, None)]);
            assert_eq!(pages.think_s(), 30.0);
        }
        assert_eq!(Pages::means(&spec, Stream::new(1, "survey")), (11_000.0, 30.0));
    }
}
