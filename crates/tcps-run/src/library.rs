//! Code that is a C function in a shared library: hooks, queue disciplines, background sources.

#![expect(unsafe_code, reason = "calls functions of shared libraries")]

use crate::crash;
use libloading::{Library, Symbol};
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};
use tcps_core::time::Time;
use tcps_net::own::{DelayCode, LossCode, Offer, QueueCode, SourceCode};
use tcps_plan::{CodePlan, RunError};

/// The one C interface of hooks (`tcps_hook.h`).
pub type HookFn = unsafe extern "C" fn(*mut c_void, *const HookIn, *mut HookOut) -> c_int;
type InitFn = unsafe extern "C" fn(*const c_char) -> *mut c_void;
type FreeFn = unsafe extern "C" fn(*mut c_void);

/// A C function of one of these types, with its state.
struct Loaded<F> {
    call: F,
    state: *mut c_void,
    free: Option<FreeFn>,
    /// What it is called where it ends the process.
    name: &'static CStr,
    /// Keeps the code alive until it is freed.
    library: Option<Library>,
}

// SAFETY: the state belongs to this object alone, and code is called by one thread at a time.
unsafe impl<F> Send for Loaded<F> {}

impl Hook for Loaded<HookFn> {
    fn call(&mut self, input: &HookIn, output: &mut HookOut) -> Verdict {
        // SAFETY: the function follows tcps_hook.h, which the scenario's author vouches for.
        let call = || output.lend(|lent| unsafe { (self.call)(self.state, input, lent) });
        match crash::named(self.name, call) {
            0 if !output.overrun() => Verdict::Emit,
            0 => Verdict::Failed("wrote more than there is room for".into()),
            1 => Verdict::Nothing,
            code => Verdict::Failed(format!("returned {code}")),
        }
    }
}

impl<F> Drop for Loaded<F> {
    fn drop(&mut self) {
        crash::named(self.name, || {
            if let Some(free) = self.free {
                // SAFETY: the state came from the library's own init function and is freed once.
                unsafe { free(self.state) }
            }
            self.library = None;
        });
    }
}

/// Loads `path:symbol`, with `symbol_init` and `symbol_free` where they exist.
pub fn hook(code: &CodePlan) -> Result<Box<dyn Hook>, RunError> {
    let name = CString::new(format!("hook {} of {}", code.symbol, code.name))
        .map(crash::lasting)
        .map_err(|e| RunError::hook(format!("{}: {e}", code.label())))?;
    Ok(Box::new(loaded::<HookFn>(code, name)?))
}

fn loaded<F: Copy>(code: &CodePlan, name: &'static CStr) -> Result<Loaded<F>, RunError> {
    crash::watch();
    crash::named(name, || load(code, name))
}

fn load<F: Copy>(code: &CodePlan, label: &'static CStr) -> Result<Loaded<F>, RunError> {
    let fail = |what: String| RunError::hook(format!("{}:{}: {what}", code.name, code.symbol));
    // SAFETY: loading a library runs its initialisers; the scenario's author names it.
    let library = unsafe { Library::new(&code.name) }.map_err(|e| fail(format!("cannot be loaded: {e}")))?;
    let get = |name: &str| CString::new(name).map_err(|e| fail(e.to_string()));
    let (name, init, free) =
        (get(&code.symbol)?, get(&format!("{}_init", code.symbol))?, get(&format!("{}_free", code.symbol))?);
    // SAFETY: the symbols have the types of tcps_hook.h.
    let (call, init, free) = unsafe {
        let call: Symbol<F> =
            library.get(name.as_bytes_with_nul()).map_err(|e| fail(format!("has no such function: {e}")))?;
        let init: Option<Symbol<InitFn>> = library.get(init.as_bytes_with_nul()).ok();
        let free: Option<Symbol<FreeFn>> = library.get(free.as_bytes_with_nul()).ok();
        (*call, init.map(|f| *f), free.map(|f| *f))
    };
    let mut params = code.params.clone();
    if let (Some(interval_ns), Some(params)) = (code.interval_ns, params.as_object_mut()) {
        params.entry("interval_ns").or_insert(interval_ns.into());
    }
    let params = CString::new(params.to_string()).map_err(|e| fail(e.to_string()))?;
    // SAFETY: as above; the library may keep nothing of `params`.
    let state = init.map_or(std::ptr::null_mut(), |f| unsafe { f(params.as_ptr()) });
    if init.is_some() && state.is_null() {
        return Err(fail(format!("{}_init refused its parameters {}", code.symbol, code.params)));
    }
    let free = free.filter(|_| !state.is_null());
    Ok(Loaded { call, state, free, name: label, library: Some(library) })
}

/// What a queue discipline in C is told, and what it answers (`tcps_hook.h`).
#[repr(C)]
pub struct QueueCall {
    now_ns: i64,
    what: u32,
    packet: u32,
    bytes: u32,
    flow: u16,
    dscp: u8,
    reserved: u8,
    cap: u32,
    dropped: u32,
    drops: *mut u32,
}

/// A packet that starts on the line of a loss model in C (`tcps_hook.h`).
#[repr(C)]
pub struct LossCall {
    now_ns: i64,
    packet: u32,
    bytes: u32,
    flow: u16,
    dscp: u8,
    reserved: [u8; 5],
}

/// A packet that is wholly on the line of a delay model in C, and the answer (`tcps_hook.h`).
#[repr(C)]
pub struct DelayCall {
    now_ns: i64,
    delay_ns: i64,
    packet: u32,
    bytes: u32,
    flow: u16,
    dscp: u8,
    reserved: [u8; 5],
}

/// A packet of a background source in C (`tcps_hook.h`).
#[repr(C)]
pub struct SourceCall {
    at_ns: i64,
    bytes: u32,
    reserved: u32,
}

type QueueFn = unsafe extern "C" fn(*mut c_void, *mut QueueCall) -> c_int;
type LossFn = unsafe extern "C" fn(*mut c_void, *const LossCall) -> c_int;
type DelayFn = unsafe extern "C" fn(*mut c_void, *mut DelayCall) -> c_int;
type SourceFn = unsafe extern "C" fn(*mut c_void, *mut SourceCall) -> c_int;

const ARRIVES: u32 = 0;
const LEAVES: u32 = 1;
/// Most packets that one call may drop.
const MOST_DROPS: usize = 256;

impl Loaded<QueueFn> {
    fn ask(
        &mut self,
        now_ns: Time,
        what: u32,
        o: &Offer,
        dropped: &mut Vec<u32>,
    ) -> Result<Option<u32>, String> {
        let mut drops = [0; MOST_DROPS];
        let mut call = QueueCall {
            now_ns,
            what,
            packet: o.number,
            bytes: o.bytes,
            flow: o.flow,
            dscp: o.dscp,
            reserved: 0,
            cap: MOST_DROPS as u32,
            dropped: 0,
            drops: drops.as_mut_ptr(),
        };
        // SAFETY: the function follows tcps_hook.h, which the scenario's author vouches for.
        let code = crash::named(self.name, || unsafe { (self.call)(self.state, &mut call) });
        let named = drops.get(..call.dropped as usize).ok_or("dropped more than there is room for")?;
        dropped.extend_from_slice(named);
        match code {
            0 => Ok(Some(call.packet)),
            1 => Ok(None),
            code => Err(format!("returned {code}")),
        }
    }
}

impl QueueCode for Loaded<QueueFn> {
    fn enqueue(&mut self, now: Time, offer: &Offer, dropped: &mut Vec<u32>) -> Result<(), String> {
        self.ask(now, ARRIVES, offer, dropped).map(drop)
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Vec<u32>) -> Result<Option<u32>, String> {
        self.ask(now, LEAVES, &Offer { number: u32::MAX, bytes: 0, flow: 0, dscp: 0 }, dropped)
    }
}

impl LossCode for Loaded<LossFn> {
    fn lose(&mut self, now_ns: Time, o: &Offer) -> Result<bool, String> {
        let &Offer { number: packet, bytes, flow, dscp } = o;
        let call = LossCall { now_ns, packet, bytes, flow, dscp, reserved: [0; 5] };
        // SAFETY: the function follows tcps_hook.h, which the scenario's author vouches for.
        match crash::named(self.name, || unsafe { (self.call)(self.state, &call) }) {
            0 => Ok(false),
            1 => Ok(true),
            code => Err(format!(
                "returned {code}; allowed: TCPS_EMIT (the packet passes), TCPS_NOTHING (it is lost)"
            )),
        }
    }
}

impl DelayCode for Loaded<DelayFn> {
    fn delay(&mut self, now_ns: Time, o: &Offer) -> Result<Time, String> {
        let &Offer { number: packet, bytes, flow, dscp } = o;
        let mut call = DelayCall { now_ns, delay_ns: 0, packet, bytes, flow, dscp, reserved: [0; 5] };
        // SAFETY: the function follows tcps_hook.h, which the scenario's author vouches for.
        match crash::named(self.name, || unsafe { (self.call)(self.state, &mut call) }) {
            0 => Ok(call.delay_ns),
            code => Err(format!("returned {code}; allowed: TCPS_EMIT")),
        }
    }
}

impl SourceCode for Loaded<SourceFn> {
    fn next(&mut self) -> Result<Option<(Time, u32)>, String> {
        let mut call = SourceCall { at_ns: 0, bytes: 0, reserved: 0 };
        // SAFETY: the function follows tcps_hook.h, which the scenario's author vouches for.
        match crash::named(self.name, || unsafe { (self.call)(self.state, &mut call) }) {
            0 => Ok(Some((call.at_ns, call.bytes))),
            1 => Ok(None),
            code => Err(format!("returned {code}")),
        }
    }
}

fn name(what: &str, code: &CodePlan) -> &'static CStr {
    crash::lasting(CString::new(format!("{what} {}", code.label())).unwrap_or_default())
}

/// The queue discipline `path:symbol`.
pub fn queue(code: &CodePlan) -> Result<Box<dyn QueueCode>, RunError> {
    Ok(Box::new(loaded::<QueueFn>(code, name("queue", code))?))
}

/// The loss model `path:symbol`.
pub fn loss(code: &CodePlan) -> Result<Box<dyn LossCode>, RunError> {
    Ok(Box::new(loaded::<LossFn>(code, name("loss", code))?))
}

/// The delay model `path:symbol`.
pub fn delay(code: &CodePlan) -> Result<Box<dyn DelayCode>, RunError> {
    Ok(Box::new(loaded::<DelayFn>(code, name("delay", code))?))
}

/// The background source `path:symbol`.
pub fn source(code: &CodePlan) -> Result<Box<dyn SourceCode>, RunError> {
    Ok(Box::new(loaded::<SourceFn>(code, name("source", code))?))
}
