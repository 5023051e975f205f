//! Values to bytes and back at component boundaries.

use tcps_plan::Codec;

/// Appends the values of coded bytes; a trailing part of a value is ignored.
pub fn decode(codec: Codec, bytes: &[u8], values: &mut Vec<f64>) {
    values.clear();
    match codec {
        Codec::F32 => {
            values.extend(bytes.chunks_exact(4).map(|b| f32::from_be_bytes([b[0], b[1], b[2], b[3]]) as f64))
        }
        Codec::F64 => values.extend(
            bytes
                .chunks_exact(8)
                .map(|b| f64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])),
        ),
        Codec::Raw => {}
    }
}

/// Replaces `bytes` by the coded values.
pub fn encode(codec: Codec, values: &[f64], bytes: &mut Vec<u8>) {
    match codec {
        Codec::F32 => {
            bytes.clear();
            values.iter().for_each(|v| bytes.extend_from_slice(&(*v as f32).to_be_bytes()));
        }
        Codec::F64 => {
            bytes.clear();
            values.iter().for_each(|v| bytes.extend_from_slice(&v.to_be_bytes()));
        }
        Codec::Raw => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_within_the_precision_of_the_codec() {
        let values = [1.5, -0.1, 1e-3];
        for (codec, size, error) in [(Codec::F32, 12, 1e-8), (Codec::F64, 24, 0.0)] {
            let (mut bytes, mut back) = (Vec::new(), Vec::new());
            encode(codec, &values, &mut bytes);
            decode(codec, &bytes, &mut back);
            assert_eq!(bytes.len(), size);
            assert!(values.iter().zip(&back).all(|(a, b)| (a - b).abs() <= error));
        }
    }

    #[test]
    fn a_truncated_sample_loses_only_its_last_value() {
        let mut values = Vec::new();
        decode(Codec::F32, &[0x3f, 0x80, 0, 0, 1, 2], &mut values);
        assert_eq!(values, [1.0]);
    }
}
