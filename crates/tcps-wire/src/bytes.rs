//! Numbers in network order out of bytes, without a panic: what is not there reads as 0.

/// The `N` bytes at `at`.
#[inline]
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|b| b.first_chunk::<N>()).copied().unwrap_or([0; N])
}

/// The byte at `at`.
#[inline]
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// The 16-bit number at `at`.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(chunk(bytes, at))
}

/// The 32-bit number at `at`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(chunk(bytes, at))
}

/// The 64-bit number at `at`.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(chunk(bytes, at))
}

/// The signed 64-bit number at `at`.
#[inline]
pub(crate) fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(chunk(bytes, at))
}
