//! Runs a compiled plan (`plan.json` of a run folder) in virtual time without Python and prints the result as JSON.
//!
//! `cargo run --release -p tcps-run --example run_plan -- PLAN [RECORDS]`

use std::{path::PathBuf, process::ExitCode};
use tcps_plan::{Plan, RunError};
use tcps_run::{
    assets::Disk,
    virtual_time::{run, Options},
};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    match (arguments.next(), arguments.next()) {
        (Some(plan), records) => match result(&plan, records) {
            Ok(json) => {
                println!("{json}");
                ExitCode::SUCCESS
            }
            Err(e) => {
                eprintln!("{}: {e}", plan.display());
                ExitCode::from(2)
            }
        },
        _ => {
            eprintln!("usage: run_plan PLAN [RECORDS]");
            ExitCode::from(2)
        }
    }
}

fn result(plan: &PathBuf, records: Option<PathBuf>) -> Result<String, RunError> {
    let text = std::fs::read_to_string(plan).map_err(|e| RunError::data(e.to_string()))?;
    let plan: Plan = serde_json::from_str(&text).map_err(|e| RunError::data(e.to_string()))?;
    let options = Options { records: records.as_deref(), pcapng: None, progress: None, every_ns: None };
    let report = run(&plan, &mut Disk, options)?;
    serde_json::to_string_pretty(&report).map_err(|e| RunError::data(e.to_string()))
}
