//! A process is killed at any instruction, without leftovers.
//!
//! Two processes exchange messages of all sizes; one of them is killed (SIGKILL) after a random
//! number of messages and a random further time. The survivor, this process, must notice, end the
//! pair with the right reason, have received only whole messages with the right contents, and have
//! no memory and no descriptor left afterwards.
//!
//! `cargo test` kills 200 times. To kill more often, or with another seed:
//!
//! ```sh
//! APUS_LOCAL_KILLS=10000 APUS_LOCAL_SEED=7 cargo test --release -p apus-local --test kill
//! ```

mod body;
mod child;
mod foreign_user;
mod leftovers;
mod survivor;

use std::sync::{Mutex, PoisonError};

use rand::SeedableRng;
use rand_pcg::Pcg64;

/// Held by tests that count open descriptors of this process, or that open some.
static ALONE: Mutex<()> = Mutex::new(());

fn from_environment(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text}: not a number")),
        Err(_) => default,
    }
}

#[test]
fn survivors_notice_and_nothing_is_left() {
    if child::is_wanted() {
        return; // This process is the one to be killed.
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let kills = from_environment("APUS_LOCAL_KILLS", 200);
    let seed = from_environment("APUS_LOCAL_SEED", 1);
    let (before, files) = (leftovers::of_this_process(), leftovers::on_disk());
    let mut messages = 0;
    for kill in 0..kills {
        let mut random = Pcg64::seed_from_u64(seed.wrapping_mul(1 << 32) + kill);
        let plan = survivor::Plan::draw(&mut random);
        eprintln!("kill {kill} of seed {seed}: {plan:?}");
        messages += survivor::run(&plan, &mut random);
        let after = leftovers::of_this_process();
        assert_eq!(after, before, "kill {kill} of seed {seed} left something behind");
    }
    eprintln!("{kills} kills, {messages} messages received before them");
    assert!(messages > kills, "hardly any messages were exchanged: {messages}");
    leftovers::assert_nothing_left(&files);
}

#[test]
fn processes_of_other_users_are_refused_unless_allowed() {
    if !child::is_wanted() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        foreign_user::try_all();
    }
}

/// Not a test: the entry point of the other process, which runs this program.
#[test]
fn the_other_process() {
    if child::is_wanted() {
        child::run();
    }
}
