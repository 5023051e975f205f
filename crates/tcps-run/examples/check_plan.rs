//! Reads a plan as JSON on standard input and says what is in it, or why it is none.
//!
//!     python -c 'print plan' | cargo run -p tcps-run --example check_plan

use std::io::Read;
use tcps_plan::Plan;

fn main() {
    let mut text = String::new();
    if let Err(error) = std::io::stdin().read_to_string(&mut text) {
        eprintln!("no text: {error}");
        std::process::exit(2);
    }
    match serde_json::from_str::<Plan>(&text) {
        Ok(plan) => println!(
            "{}: {} nodes, {} components, {} flows, {} channels, {} links",
            plan.name,
            plan.nodes.len(),
            plan.components.len(),
            plan.flows.len(),
            plan.channels.len(),
            plan.network.links.len()
        ),
        Err(error) => {
            eprintln!("no plan: {error}");
            std::process::exit(2);
        }
    }
}
