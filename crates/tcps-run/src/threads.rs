//! Threads: where a limit of memory or of processes leaves no room for one, there is an error, and no panic.

use std::thread::{Builder, JoinHandle};
use tcps_plan::RunError;

const NO_ROOM: &str = "a thread cannot be started";

/// Starts a thread.
pub fn start<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, RunError> {
    Builder::new().spawn(body).map_err(|e| RunError::system(NO_ROOM, e))
}

/// Starts a thread that ends with a scope.
#[cfg(target_os = "linux")]
pub fn scoped<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<std::thread::ScopedJoinHandle<'scope, T>, RunError> {
    Builder::new().spawn_scoped(scope, body).map_err(|e| RunError::system(NO_ROOM, e))
}
