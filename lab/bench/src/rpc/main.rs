//! `apus-bench-rpc`: typed services and tonic over apus, beside tonic over HTTP/2 and tarpc. `apus-lab bench rpc` starts it.
//!
//! It is a program of its own, so that building `apus` needs none of the other sides. Client and server are processes of their
//! own, each with a runtime of one thread; everything goes over loopback, apus over UDP as between hosts.
//!
//! ```text
//!   options     what is measured, and how long
//!   contender   the contenders: what each server does, and what a call is
//!   server      the server's process, and what the client's process knows of it
//!   load        calls one at a time, and many outstanding
//!   calls       the experiment `rpc`: latency and rate of each contender
//!   hedging     the experiment `rpc-hedging`: servers that stall at random
//! ```

#![forbid(unsafe_code)]

mod calls;
mod contender;
#[path = "generated/echo.rs"]
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
mod echo;
mod error;
mod hedging;
mod load;
mod options;
mod server;
mod sides;

use clap::Parser;
use error::Error;
use options::{Command, Options};
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = Options::parse();
    if let Err(message) = options.check() {
        eprintln!("error: {message}");
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(Error::from).and_then(|runtime| {
        runtime.block_on(async {
            match &options.command {
                Some(Command::Serve { contender }) => sides::serve(*contender).await,
                Some(Command::ServeStalling { seed, percent }) => {
                    hedging::serve(*seed, *percent).await
                }
                None if options.hedging => options.show(&hedging::run(&options).await?),
                None => options.show(&calls::run(&options).await?),
            }
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
