//! A file system in memory: `cargo run -p apus-fuse --example memory -- DIRECTORY`.
//!
//! Mounts at DIRECTORY and serves until it is unmounted (`umount DIRECTORY`).

mod attributes;
mod locks;
mod names;
mod nodes;
mod server;

use apus_fuse::{Mount, MountOptions, ReadError, RequestBuffer, Session, SessionSettings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(path) = std::env::args_os().nth(1) else {
        return Err("usage: memory DIRECTORY".into());
    };
    let settings = SessionSettings::default();
    let (mount, device) = Mount::new(path.as_ref(), &MountOptions::default())?;
    let session = Session::new(device, settings)?;
    let mut server = server::MemoryServer::default();
    let mut buffer = RequestBuffer::new(&settings);
    println!("mounted at {}", mount.path().display());
    loop {
        match server.step(&session, &mut buffer) {
            Ok(true) => {}
            Ok(false) => {
                session.wait(None)?;
            }
            Err(ReadError::Unmounted) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
