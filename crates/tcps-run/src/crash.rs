//! Code of the user's that kills the process, or never gives it back: its name is told before the end.
//!
//! ```text
//! named(name, call) ──► SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT within ──► one sentence, then what the signal does
//!                  ├──► SIGALRM and others that code asks for, any time ─► one sentence, then the end
//!                  ├──► exit() within ───────────────────────────────────► one sentence, then the end
//!                  ├──► a process that it forked comes back from it ──────► one sentence, then the end of that process
//!                  ├──► third Ctrl-C while it does not return ──────────► one sentence, then the end
//!                  └──► in a node whose run is gone, it does not return ► one sentence, then the end
//! ```

#![expect(unsafe_code, reason = "handlers of signals")]

use crate::threads;
use std::{
    cell::Cell,
    collections::BTreeSet,
    ffi::{c_char, c_int, c_void, CStr, CString},
    fs::File,
    io::Read,
    ptr,
    sync::{
        atomic::{AtomicPtr, AtomicU32, AtomicU8, Ordering},
        Mutex, Once, OnceLock, PoisonError,
    },
    thread,
    time::Duration,
};
use tcps_plan::RunError;

const SIGNALS: [(c_int, &CStr); 5] = [
    (libc::SIGSEGV, c"SIGSEGV (invalid memory access)"),
    (libc::SIGBUS, c"SIGBUS (access to memory that does not exist)"),
    (libc::SIGFPE, c"SIGFPE (integer division by zero)"),
    (libc::SIGILL, c"SIGILL (an instruction that this processor lacks)"),
    (libc::SIGABRT, c"SIGABRT (it called abort)"),
];
/// Signals that end a process which asked for them and does not handle them.
const ASKED: [(c_int, &CStr); 8] = [
    (libc::SIGALRM, c"SIGALRM (a timer)"),
    (libc::SIGVTALRM, c"SIGVTALRM (a timer)"),
    (libc::SIGPROF, c"SIGPROF (a timer)"),
    (libc::SIGUSR1, c"SIGUSR1"),
    (libc::SIGUSR2, c"SIGUSR2"),
    (libc::SIGIO, c"SIGIO (a file that is ready)"),
    (libc::SIGTRAP, c"SIGTRAP (a breakpoint)"),
    (libc::SIGSYS, c"SIGSYS (a system call that is forbidden)"),
];
const LOST: &CStr =
    c", for which it has no handler. The results of a run in virtual time are lost, and an earlier \
    result is kept; allowed: code that handles the signals that it requests, or requests none\n";
const REMEDY: &CStr = c". Run it under a debugger: gdb --args python -m tcpsbed run ...\n";
/// Exit status of a run that code ended, and of a process that code forked and gave back.
const ENDED: c_int = 1;
/// Exit status after Ctrl-C, as shells have it.
const INTERRUPTED: c_int = 130;
/// Ctrl-C that ends the process whatever runs in it.
const LAST: usize = 3;
/// In what every process says that code forked and gave back.
pub const FORKED: &CStr = c"forked returned";
const FORKED_REMEDY: &CStr =
    c" from the call and was stopped; end it in that code, for example with os._exit(0); the run continues\n";
const EXITED: &CStr =
    c" ended the process with exit(): report a failure by the return value of the hook, or by an exception\n";
const STACK_BYTES: usize = 1 << 16;

thread_local! {
    static CURRENT: Cell<*const c_char> = const { Cell::new(ptr::null()) };
}
/// What was called last and has not returned yet, in any thread; null when nothing runs.
static LATEST: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
/// The only code that has a name, or words for several.
static ONLY: AtomicPtr<c_char> = AtomicPtr::new(SOME.as_ptr().cast_mut());
const SOME: &CStr = c"code of the scenario";
/// Which process this is: a number that the C library has a fork count up.
static PROCESS: AtomicU32 = AtomicU32::new(1);
/// The same number in a page that the kernel empties in a forked process: one forked past the C library finds 0.
static MARKED: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
static BEFORE: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// A byte that another process looks at: this one ended, and said why.
static ENDS: AtomicPtr<AtomicU8> = AtomicPtr::new(ptr::null_mut());

/// Where it is noted, from now on, that this process ends and has said why.
pub fn mark_ends(at: &'static AtomicU8) {
    ENDS.store(ptr::from_ref(at).cast_mut(), Ordering::Relaxed);
}

/// Ends this process, after a word about it.
fn leave(status: c_int) -> ! {
    // SAFETY: who gave the byte keeps it; ends the process without its destructors, which may wait for the code that does
    // not return.
    unsafe {
        if let Some(ends) = ENDS.load(Ordering::Relaxed).as_ref() {
            ends.store(1, Ordering::Relaxed);
        }
        libc::_exit(status)
    }
}

/// A name that outlives the code that it names: one that ends its thread takes with it what called it, and the word
/// about it comes afterwards.
pub fn lasting(name: CString) -> &'static CStr {
    static NAMES: Mutex<BTreeSet<&'static CStr>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name.as_c_str()) {
        return known;
    }
    let kept: &'static CStr = Box::leak(name.into_boxed_c_str());
    let only = if names.is_empty() { kept } else { SOME };
    ONLY.store(only.as_ptr().cast_mut(), Ordering::Relaxed);
    names.insert(kept);
    kept
}

/// Calls code that may end the process, or make a second one of it, under its name.
pub fn named<T>(name: &'static CStr, call: impl FnOnce() -> T) -> T {
    let mut this = Call { name, outer: CURRENT.replace(name.as_ptr()), process: process(), returned: false };
    LATEST.store(name.as_ptr().cast_mut(), Ordering::Relaxed);
    let answer = call();
    this.returned = true;
    answer
}

/// Which process this is.
fn process() -> u32 {
    // SAFETY: the page is never given back.
    let marked = unsafe { MARKED.load(Ordering::Relaxed).as_ref() };
    marked.unwrap_or(&PROCESS).load(Ordering::Relaxed)
}

/// Without a page that forks empty, forks past the C library are not noticed.
#[cfg(not(target_os = "linux"))]
fn mark() {}

/// Marks this process, in a page that forks empty.
#[cfg(target_os = "linux")]
fn mark() {
    let (room, access) = (size_of::<AtomicU32>(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new page of zeros, which is a valid number, and which is never given back.
    unsafe {
        let page = libc::mmap(ptr::null_mut(), room, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        if page != libc::MAP_FAILED && libc::madvise(page, room, libc::MADV_WIPEONFORK) == 0 {
            let marked: *mut AtomicU32 = page.cast();
            (*marked).store(PROCESS.load(Ordering::Relaxed), Ordering::Relaxed);
            MARKED.store(marked, Ordering::Relaxed);
        }
    }
}

/// Ends a process that code forked and did not end: the run goes on in the one that called the code, and only there.
#[cold]
fn end_of_fork(name: &CStr) -> ! {
    report_all([c"\ntcpsbed: a process that ", name, c" ", FORKED, FORKED_REMEDY]);
    // SAFETY: ends the process without its destructors, which are the business of the one that it was forked from.
    unsafe { libc::_exit(ENDED) }
}

/// In the new process, which may crash and exit without a word: it is none of the run's.
extern "C" fn forked() {
    let number = PROCESS.fetch_add(1, Ordering::Relaxed) + 1;
    // SAFETY: as above.
    if let Some(marked) = unsafe { MARKED.load(Ordering::Relaxed).as_ref() } {
        marked.store(number, Ordering::Relaxed);
    }
    CURRENT.set(ptr::null());
    LATEST.store(ptr::null_mut(), Ordering::Relaxed);
}

/// Code calls `exit`, within the call or in a thread that it started meanwhile: without a word a run in virtual time
/// would seem to have succeeded. The first thread, outside of calls, ends the program as it should.
extern "C" fn exiting() {
    #[cfg(target_os = "linux")]
    // SAFETY: both only ask.
    let first = unsafe { libc::gettid() == libc::getpid() };
    #[cfg(not(target_os = "linux"))]
    // SAFETY: it only asks.
    let first = unsafe { libc::pthread_main_np() == 1 };
    let name = match CURRENT.get() {
        current if first || !current.is_null() => current,
        _ => LATEST.load(Ordering::Relaxed),
    };
    if name.is_null() {
        return;
    }
    // SAFETY: `named` was given a text that lives as long as the process.
    report_all([c"\ntcpsbed: ", unsafe { CStr::from_ptr(name) }, EXITED]);
    // SAFETY: what the code printed is written.
    unsafe { libc::fflush(ptr::null_mut()) };
    leave(ENDED)
}

/// A call under its name. When it has ended, also by a panic, the name around it is back, and a fork that comes back ends.
/// Code that unwinds the thread by `pthread_exit` keeps its name: the process dies of that.
struct Call {
    name: &'static CStr,
    outer: *const c_char,
    process: u32,
    returned: bool,
}

impl Drop for Call {
    fn drop(&mut self) {
        if process() != self.process {
            end_of_fork(self.name);
        }
        if self.returned || thread::panicking() {
            LATEST.store(self.outer.cast_mut(), Ordering::Relaxed);
            CURRENT.set(self.outer);
        }
    }
}

/// Prepares this process, and this thread, for code that may end it.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = SIGNALS.map(|(signal, _)| {
            // SAFETY: both structures are plain data; the handler calls nothing but writev, sigaction and raise.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = report as *const () as usize;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigaction(signal, &new, &mut old);
                old
            }
        });
        let _ = BEFORE.set(before);
        for (signal, _) in ASKED {
            // SAFETY: as above. Who handles or ignores a signal goes on doing so.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(signal, ptr::null(), &mut old) == 0 && old.sa_sigaction == libc::SIG_DFL {
                    old.sa_sigaction = report_asked as *const () as usize;
                    old.sa_flags = libc::SA_ONSTACK;
                    libc::sigaction(signal, &old, ptr::null_mut());
                }
            }
        }
        // SAFETY: the handlers call nothing that needs what destructors take. Without memory they are not there.
        unsafe {
            mark();
            libc::pthread_atfork(None, None, Some(forked));
            libc::atexit(exiting);
        }
    });
    stack();
}

/// Gives this thread a stack for handlers, if it has none: that of a recursion without end is used up.
fn stack() {
    // SAFETY: the memory is never freed, so that the kernel may use it as long as the thread lives.
    unsafe {
        let mut found: libc::stack_t = std::mem::zeroed();
        if libc::sigaltstack(ptr::null(), &mut found) == 0 && found.ss_flags & libc::SS_DISABLE != 0 {
            let room = Box::leak(vec![0u8; STACK_BYTES].into_boxed_slice());
            let own = libc::stack_t { ss_sp: room.as_mut_ptr().cast(), ss_flags: 0, ss_size: STACK_BYTES };
            libc::sigaltstack(&own, ptr::null_mut());
        }
    }
}

/// Several parts as one line, which no other process writes into.
fn report_all<const N: usize>(parts: [&CStr; N]) {
    let part =
        |text: &CStr| libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.count_bytes() };
    let whole = parts.map(part);
    // SAFETY: the texts are whole; there is nothing to be done about an error here.
    unsafe { libc::writev(libc::STDERR_FILENO, whole.as_ptr(), N as c_int) };
}

extern "C" fn report(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let place = SIGNALS.iter().position(|(known, _)| *known == signal).unwrap_or(0);
    let name = CURRENT.get();
    if !name.is_null() {
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name) };
        report_all([c"\ntcpsbed: ", name, c" died of ", SIGNALS[place].1, REMEDY]);
    }
    // SAFETY: what was there before, or the default, takes over: on return the same instruction fails again.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, BEFORE.get().map_or(&default, |b| &b[place]), ptr::null_mut());
        if (*info).si_code <= 0 {
            libc::raise(signal);
        }
    }
}

/// A signal that nothing of ours asks for: who did is named, and the process ends.
extern "C" fn report_asked(signal: c_int) {
    let sign = ASKED.iter().find(|(known, _)| *known == signal).map_or(c"a signal", |(_, name)| name);
    let within = CURRENT.get();
    let name = if within.is_null() { ONLY.load(Ordering::Relaxed) } else { within };
    // SAFETY: as above.
    report_all([c"\ntcpsbed: ", unsafe { CStr::from_ptr(name) }, c" ended the process by ", sign, LOST]);
    leave(ENDED)
}

/// Ends the process, and its children, when the third Ctrl-C or request to end is written to `signals`.
///
/// A thread of its own reads there, which needs no interpreter: code that holds it cannot keep the process.
pub fn end_at_third(mut signals: File) -> Result<(), RunError> {
    let wanted = [libc::SIGINT as u8, libc::SIGTERM as u8];
    threads::start(move || {
        let (mut count, mut one) = (0, [0u8]);
        while matches!(signals.read(&mut one), Ok(1)) {
            count += usize::from(wanted.contains(&one[0]));
            if count == LAST {
                end();
            }
        }
    })?;
    Ok(())
}

/// Ends the process when it has not ended by itself this long after its standard input was closed: what started it is
/// gone, and code that does not return would keep a core, perhaps at a real-time priority.
pub fn end_without_input(grace: Duration) -> Result<(), RunError> {
    threads::start(move || {
        let mut input = libc::pollfd { fd: libc::STDIN_FILENO, events: 0, revents: 0 };
        while input.revents & (libc::POLLHUP | libc::POLLERR) == 0 {
            // SAFETY: one structure that lives here.
            unsafe { libc::poll(&mut input, 1, -1) };
            if input.revents & libc::POLLNVAL != 0 {
                return;
            }
        }
        thread::sleep(grace);
        report_all([c"\ntcpsbed: the run of this node is gone, and ", latest(), c" did not return\n"]);
        leave(ENDED);
    })?;
    Ok(())
}

/// The name of what was called last and has not returned.
fn latest() -> &'static CStr {
    let name = LATEST.load(Ordering::Relaxed);
    // SAFETY: `named` was given a text that lives as long as the process.
    if name.is_null() {
        c"what ran"
    } else {
        unsafe { CStr::from_ptr(name) }
    }
}

fn end() -> ! {
    let kept = c" did not return. What was written until then is in the run's folder NAME.unfinished-N: tcpsbed report FOLDER reads it\n";
    report_all([c"\ntcpsbed: stopped at once: ", latest(), kept]);
    for child in children() {
        // SAFETY: a process that this one started and has not waited for yet.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    leave(INTERRUPTED)
}

fn children() -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let listed = tasks.flatten().filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    listed
        .flat_map(|ids| ids.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_forgotten_when_its_call_panics() {
        let outer = lasting(c"outer".to_owned());
        assert_eq!(lasting(c"outer".to_owned()).as_ptr(), outer.as_ptr());
        named(outer, || {
            let panicked = std::panic::catch_unwind(|| named(c"inner", || panic!("as it must")));
            assert!(panicked.is_err());
            assert_eq!(CURRENT.get(), outer.as_ptr());
        });
        assert!(CURRENT.get().is_null());
    }

    #[test]
    fn a_process_that_is_forked_past_the_c_library_ends_at_the_call() {
        watch();
        // SAFETY: the new process does nothing but return.
        let child =
            named(c"mine", || unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) }) as i32;
        if child == 0 {
            // SAFETY: ends the new process, which should not be here.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: the process was started above.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, ENDED));
    }

    #[test]
    fn a_forked_process_that_panics_ends_at_the_call() {
        watch();
        let came_back = std::panic::catch_unwind(|| {
            // SAFETY: the new process does nothing but unwind.
            named(c"mine", || match unsafe { libc::fork() } {
                0 => std::panic::resume_unwind(Box::new(())),
                child => child,
            })
        });
        // SAFETY: ends the new process, which should not be here.
        let child = came_back.unwrap_or_else(|_| unsafe { libc::_exit(0) });
        let mut status = 0;
        // SAFETY: the process was started above.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, ENDED));
    }
}
