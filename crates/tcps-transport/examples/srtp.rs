//! A direction of SRTP on standard input and output, for comparison with other programs.
//!
//! `srtp PROFILE MASTER`, then lines `seal PACKET` or `open PACKET`, all in hexadecimal digits. Each line is answered: by a packet,
//! or by `refused`.

use std::{
    error::Error,
    io::{stdin, BufRead as _},
};
use tcps_transport::security::{Profile, Srtp};

fn bytes(hex: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let digits = |at| hex.get(at..at + 2).ok_or("an odd number of digits");
    (0..hex.len()).step_by(2).map(|at| Ok(u8::from_str_radix(digits(at)?, 16)?)).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let [profile, master] = [1, 2].map(|n| std::env::args().nth(n).unwrap_or_default());
    let profile = Profile::ALL.into_iter().find(|p| p.name() == profile).ok_or("no such profile")?;
    let make = || {
        Ok::<_, Box<dyn Error>>(Srtp::new(profile, &bytes(&master)?).ok_or("a master key of another length")?)
    };
    let (mut sender, mut receiver, mut out) = (make()?, make()?, Vec::new());
    for line in stdin().lock().lines() {
        let line = line?;
        let (what, packet) = line.split_once(' ').ok_or("a word and a packet")?;
        let packet = bytes(packet)?;
        let done = match what {
            "seal" => sender.seal(&packet, &mut out),
            _ => receiver.open(&packet, &mut out).is_ok(),
        };
        match done {
            true => println!("{}", out.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
            false => println!("refused"),
        }
    }
    Ok(())
}
