//! Hooks: user code in the path of a sample, behind one C interface.
//!
//! ```c
//! int   hook(void *state, const tcps_in *in, tcps_out *out);  // 0 emit, 1 emit nothing, negative: error
//! void *hook_init(const char *params_json);                   // optional
//! void  hook_free(void *state);                               // optional
//! ```
//! Built-in Rust hooks, C functions, numba functions and Python classes all see these two structures.

/// What a hook is given. Pointers are valid during the call only.
#[repr(C)]
#[derive(Debug)]
pub struct HookIn {
    /// The node's clock.
    pub now_ns: i64,
    /// When the sample was made, on the clock of the node that made it.
    pub origin_ns: i64,
    /// Number of the sample within its flow.
    pub index: u32,
    /// Flow number.
    pub flow: u16,
    /// 1 if there is a sample, 0 if a periodic stage ticks without a new one.
    pub present: u16,
    /// Values in `x`.
    pub n: u32,
    /// Bytes in `bytes`.
    pub n_bytes: u32,
    /// Values in `other`.
    pub n_other: u32,
    /// 1 if an echo command rides on the sample, which then must not be kept back; else 0.
    pub tagged: u16,
    /// Samples that the transport on the way out merges into a packet now; 1 where it never does.
    pub merging: u16,
    /// The decoded sample.
    pub x: *const f64,
    /// The coded sample.
    pub bytes: *const u8,
    /// The newest sample of the other direction seen at this component.
    pub other: *const f64,
}

/// What a hook gives back. It writes at most `cap` values and `cap_bytes` bytes and sets `n` or `n_bytes`.
#[repr(C)]
#[derive(Debug)]
pub struct HookOut {
    /// Values written.
    pub n: u32,
    /// Room in `y`.
    pub cap: u32,
    /// Bytes written.
    pub n_bytes: u32,
    /// Room in `bytes`.
    pub cap_bytes: u32,
    /// Values out.
    pub y: *mut f64,
    /// Bytes out.
    pub bytes: *mut u8,
}

impl HookIn {
    /// The decoded sample.
    pub fn x(&self) -> &[f64] {
        // SAFETY: the runtime sets `x` and `n` from one slice that outlives the call.
        unsafe { slice(self.x, self.n) }
    }

    /// The coded sample.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: as above.
        unsafe { slice(self.bytes, self.n_bytes) }
    }

    /// The other direction's newest sample.
    pub fn other(&self) -> &[f64] {
        // SAFETY: as above.
        unsafe { slice(self.other, self.n_other) }
    }
}

impl HookOut {
    /// Writes values, cut at the room there is.
    pub fn set(&mut self, values: &[f64]) {
        let n = values.len().min(self.cap as usize);
        // SAFETY: the runtime gives `y` with room for `cap` values.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.y, n) };
        self.n = n as u32;
    }

    /// Writes bytes, cut at the room there is.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        let n = bytes.len().min(self.cap_bytes as usize);
        // SAFETY: the runtime gives `bytes` with room for `cap_bytes` bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes, n) };
        self.n_bytes = n as u32;
    }
}

unsafe fn slice<'a, T>(data: *const T, len: u32) -> &'a [T] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: the caller vouches for `len` readable values at `data`.
    unsafe { std::slice::from_raw_parts(data, len as usize) }
}

/// What a hook decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Go on with what is in `HookOut`.
    Emit,
    /// The sample ends here on purpose; it counts as suppressed, not as lost.
    Nothing,
    /// The hook failed; the text goes into the report.
    Failed(String),
}

/// A piece of user code in the path of a sample.
pub trait Hook: Send {
    /// Handles one sample.
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict;
}
