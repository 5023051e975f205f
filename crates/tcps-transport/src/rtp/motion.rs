//! Motion at the front of multimodal samples, which not every sample carries.

/// Bytes of motion at the front of a multimodal sample: x, y, z.
pub(crate) const MOTION_BYTES: usize = 12;

/// The last motion of multimodal samples that came.
pub(crate) type Motion = [u8; MOTION_BYTES];

/// Puts the last motion into a multimodal sample that carries none.
// [Abdullah 2023]
pub(crate) fn hold_motion(motion: &mut Motion, index: u32, every: u32, sample: &mut [u8]) {
    let Some((front, rest)) = sample.split_first_chunk_mut::<MOTION_BYTES>() else { return };
    if rest.is_empty() {
        return;
    }
    match index % every {
        0 => *motion = *front,
        _ => *front = *motion,
    }
}
