//! Where samples come from: generated, recorded, frames of bytes, or the robot.

use crate::assets::Assets;
use std::sync::Arc;
use tcps_plan::{Codec, FlowPlan, Repeat, RunError, SourcePlan};

/// Something that gives the content of sample `index`, the same whenever it is asked (the robot excepted).
#[derive(Debug, Clone)]
pub enum Source {
    /// A triangle wave per value, or mixed bytes.
    Generated {
        /// Size of a sample.
        bytes: u32,
    },
    /// Rows of a recording.
    Values {
        /// Row-major values.
        rows: Arc<Vec<f64>>,
        /// Values a row.
        columns: usize,
        /// What happens at the end.
        repeat: Repeat,
    },
    /// Frames cut from one block of bytes.
    Frames {
        /// The block.
        data: Arc<Vec<u8>>,
        /// Where frames begin; the last entry is the end.
        offsets: Arc<Vec<u64>>,
    },
    /// Mixed bytes in frames of given sizes.
    Sizes {
        /// Size of each frame, repeated.
        bytes: Arc<Vec<u32>>,
    },
    /// What the robot senses.
    Robot,
}

impl Source {
    /// The source of a flow, with what its file holds.
    pub fn open(flow: &FlowPlan, assets: &mut dyn Assets) -> Result<Self, RunError> {
        let mut read =
            |path: &str| assets.file(path).map_err(|e| e.within(format!("flows.{}.source", flow.name)));
        Ok(match &flow.source {
            SourcePlan::Generated { bytes } => Source::Generated { bytes: *bytes },
            SourcePlan::Values { path, columns, repeat } => {
                let rows: Vec<f64> = read(path)?
                    .chunks_exact(8)
                    .map(|b| f64::from_le_bytes(b.try_into().unwrap_or_default()))
                    .collect();
                let columns = *columns as usize;
                if columns == 0 || rows.len() < columns || !rows.len().is_multiple_of(columns) {
                    let text =
                        format!("flows.{}.source: {path} holds no rows of {columns} values", flow.name);
                    return Err(RunError::data(text));
                }
                Source::Values { rows: Arc::new(rows), columns, repeat: *repeat }
            }
            SourcePlan::Frames { path, offsets } => {
                let data = read(path)?;
                let rising = offsets.windows(2).all(|w| w[0] <= w[1]);
                if offsets.len() < 2 || !rising || offsets.last().is_some_and(|&end| end > data.len() as u64)
                {
                    return Err(RunError::data(format!(
                        "flows.{}.source: offsets do not fit {path}",
                        flow.name
                    )));
                }
                Source::Frames { data: Arc::new(data), offsets: Arc::new(offsets.clone()) }
            }
            SourcePlan::Sizes { bytes } if bytes.is_empty() => {
                return Err(RunError::data(format!("flows.{}.source: no frame sizes", flow.name)));
            }
            SourcePlan::Sizes { bytes } => Source::Sizes { bytes: Arc::new(bytes.clone()) },
            SourcePlan::Robot => Source::Robot,
        })
    }

    /// Puts sample `index` into `bytes` or `values`; tells whether it gave values.
    pub fn fill(&self, codec: Codec, index: u32, bytes: &mut Vec<u8>, values: &mut Vec<f64>) -> bool {
        match self {
            Source::Generated { bytes: size } => match codec {
                Codec::Raw => mixed(index, *size, bytes),
                Codec::F32 => triangles::<4>(index, *size, bytes, |v| v.to_be_bytes()),
                Codec::F64 => triangles::<8>(index, *size, bytes, |v| (v as f64).to_be_bytes()),
            },
            Source::Values { rows, columns, repeat } => {
                let at = row(index as usize, rows.len() / columns, *repeat) * columns;
                values.clear();
                values.extend_from_slice(&rows[at..at + columns]);
                return true;
            }
            Source::Frames { data, offsets } => {
                let i = index as usize % (offsets.len() - 1);
                bytes.clear();
                bytes.extend_from_slice(&data[offsets[i] as usize..offsets[i + 1] as usize]);
            }
            Source::Sizes { bytes: sizes } => mixed(index, sizes[index as usize % sizes.len()], bytes),
            Source::Robot => {}
        }
        false
    }
}

fn row(index: usize, rows: usize, repeat: Repeat) -> usize {
    match repeat {
        Repeat::Loop => index % rows,
        Repeat::Hold => index.min(rows - 1),
        Repeat::Mirror if rows == 1 => 0,
        Repeat::Mirror => {
            let i = index % (2 * rows - 2);
            i.min(2 * rows - 2 - i)
        }
    }
}

/// A triangle wave of 1 s at 1 kHz between -1 and 1 per value, each value a tenth of a second ahead of the one before.
fn triangles<const N: usize>(index: u32, size: u32, out: &mut Vec<u8>, to_bytes: impl Fn(f32) -> [u8; N]) {
    out.clear();
    for i in 0..size / N as u32 {
        let phase = (index.wrapping_add(i * 100) % 1000) as i32;
        out.extend_from_slice(&to_bytes((phase - 500).abs() as f32 * (1.0 / 250.0) - 1.0));
    }
    out.resize(size as usize, 0);
}

/// Bytes that differ from sample to sample and are cheap to make again: SplitMix64 of the index and the position.
fn mixed(index: u32, size: u32, out: &mut Vec<u8>) {
    const WORD: usize = 8;
    let mut x = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut word = || {
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 27)).to_le_bytes()
    };
    out.resize(size as usize, 0);
    let mut words = out.chunks_exact_mut(WORD);
    words.by_ref().for_each(|room| room.copy_from_slice(&word()));
    let rest = words.into_remainder();
    rest.copy_from_slice(&word()[..rest.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_loop_mirror_and_hold() {
        let at = |repeat| (0..7).map(|i| row(i, 3, repeat)).collect::<Vec<_>>();
        assert_eq!(at(Repeat::Loop), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(at(Repeat::Mirror), [0, 1, 2, 1, 0, 1, 2]);
        assert_eq!(at(Repeat::Hold), [0, 1, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn generated_samples_have_their_size_and_differ() {
        for codec in [Codec::F32, Codec::F64, Codec::Raw] {
            let source = Source::Generated { bytes: 70 };
            let (mut a, mut b, mut values) = (Vec::new(), Vec::new(), Vec::new());
            source.fill(codec, 1, &mut a, &mut values);
            source.fill(codec, 2, &mut b, &mut values);
            assert_eq!((a.len(), b.len()), (70, 70));
            assert_ne!(a, b, "{codec:?}");
        }
    }

    #[test]
    fn triangle_values_stay_within_one() {
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        for i in 0..2000 {
            Source::Generated { bytes: 24 }.fill(Codec::F32, i, &mut bytes, &mut values);
            crate::sample_codec::decode(Codec::F32, &bytes, &mut values);
            assert!(values.len() == 6 && values.iter().all(|v| v.abs() <= 1.0));
        }
    }

    /// The two ends of a flow that is verified make its bytes on their own, on computers that may have different versions.
    #[test]
    fn mixed_bytes_are_the_same_for_ever() {
        let bytes = |index| {
            let mut bytes = Vec::new();
            Source::Sizes { bytes: Arc::new(vec![10]) }.fill(Codec::Raw, index, &mut bytes, &mut Vec::new());
            bytes
        };
        assert_eq!(bytes(0), [0x60, 0xa3, 0x2b, 0x9e, 0xba, 0xfc, 0x94, 0x2a, 0xfa, 0x80]);
        assert_eq!(bytes(7), [0xe9, 0x47, 0xa6, 0x1e, 0xaa, 0x69, 0xa6, 0x70, 0xf7, 0x88]);
    }

    #[test]
    fn values_of_a_sample_are_a_triangle_wave_each_a_tenth_of_a_second_ahead_of_the_one_before() {
        let values = |index| {
            let (mut bytes, mut values) = (Vec::new(), Vec::new());
            Source::Generated { bytes: 24 }.fill(Codec::F32, index, &mut bytes, &mut values);
            crate::sample_codec::decode(Codec::F32, &bytes, &mut values);
            values
        };
        assert_eq!((values(0)[0], values(250)[0], values(500)[0], values(1000)[0]), (1.0, 0.0, -1.0, 1.0));
        for index in [0, 1, 333, 999] {
            let first: Vec<f64> = (0..6).map(|i| values(index + 100 * i)[0]).collect();
            assert_eq!(values(index), first, "sample {index}");
        }
    }

    #[test]
    fn frames_come_in_turn_and_begin_again_behind_the_last() {
        let frames = Source::Frames { data: Arc::new(vec![1, 2, 2, 3]), offsets: Arc::new(vec![0, 1, 3, 4]) };
        let turn = (0..7).map(|index| {
            let mut bytes = vec![9; 9];
            frames.fill(Codec::Raw, index, &mut bytes, &mut Vec::new());
            bytes
        });
        let (one, two, three) = (vec![1], vec![2, 2], vec![3]);
        let expected = [&one, &two, &three, &one, &two, &three, &one].map(Clone::clone);
        assert_eq!(turn.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_recording_of_one_row_is_that_row_whatever_happens_at_its_end() {
        for repeat in [Repeat::Loop, Repeat::Mirror, Repeat::Hold] {
            assert_eq!((0..3).map(|i| row(i, 1, repeat)).collect::<Vec<_>>(), [0; 3], "{repeat:?}");
        }
    }
}
