//! Hooks that are C functions in a shared library.

use crate::crash;
use libloading::{Library, Symbol};
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use tcps_core::hook::{Hook, HookIn, HookOut, Verdict};
use tcps_plan::{CodePlan, RunError};

/// The one C interface of hooks (`tcps_hook.h`).
pub type HookFn = unsafe extern "C" fn(*mut c_void, *const HookIn, *mut HookOut) -> c_int;
type InitFn = unsafe extern "C" fn(*const c_char) -> *mut c_void;
type FreeFn = unsafe extern "C" fn(*mut c_void);

/// A C function with its state.
pub struct CHook {
    call: HookFn,
    state: *mut c_void,
    free: Option<FreeFn>,
    /// What it is called where it ends the process.
    name: &'static CStr,
    /// Keeps the code alive until it is freed.
    library: Option<Library>,
}

// SAFETY: the state belongs to this hook alone, and a hook is called by one thread at a time.
unsafe impl Send for CHook {}

impl Hook for CHook {
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

impl Drop for CHook {
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
        .map_err(|e| RunError::new(format!("{}: {e}", code.label())))?;
    crash::watch();
    crash::named(name, || load(code, name))
}

fn load(code: &CodePlan, label: &'static CStr) -> Result<Box<dyn Hook>, RunError> {
    let fail = |what: String| RunError::new(format!("{}:{}: {what}", code.name, code.symbol));
    // SAFETY: loading a library runs its initialisers; the scenario's author names it.
    let library = unsafe { Library::new(&code.name) }.map_err(|e| fail(format!("cannot be loaded: {e}")))?;
    let get = |name: &str| CString::new(name).map_err(|e| fail(e.to_string()));
    let (name, init, free) =
        (get(&code.symbol)?, get(&format!("{}_init", code.symbol))?, get(&format!("{}_free", code.symbol))?);
    // SAFETY: the symbols have the types of tcps_hook.h.
    let (call, init, free) = unsafe {
        let call: Symbol<HookFn> =
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
    Ok(Box::new(CHook { call, state, free, name: label, library: Some(library) }))
}
