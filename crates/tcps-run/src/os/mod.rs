//! What the machine gives: clocks, sockets, ways of waiting, network namespaces, and files that outlive who writes them.

pub mod capture;
pub mod clock;
#[cfg(target_os = "linux")]
pub(crate) mod handover;
pub mod merge;
#[cfg(target_os = "linux")]
pub(crate) mod namespace;
#[cfg(target_os = "linux")]
pub(crate) mod owner;
#[cfg(target_os = "linux")]
pub mod ring;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
pub mod wait;

use std::thread::{Builder, JoinHandle};
use tcps_plan::RunError;

const NO_THREAD: &str = "a thread cannot be started";

/// A thread for this; an error where a limit of memory or of processes leaves no room for it.
pub(crate) fn thread<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, RunError> {
    Builder::new().spawn(body).map_err(|e| RunError::system(NO_THREAD, e))
}

/// The same for a thread that ends with a scope.
#[cfg(target_os = "linux")]
pub(crate) fn scoped<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<std::thread::ScopedJoinHandle<'scope, T>, RunError> {
    Builder::new().spawn_scoped(scope, body).map_err(|e| RunError::system(NO_THREAD, e))
}
