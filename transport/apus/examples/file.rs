//! Files of up to 64 MB, each in one message: a server with a folder, and a client.
//!
//! ```sh
//! cargo run --example file -- serve 127.0.0.1:4000 /tmp/files
//! cargo run --example file -- put 127.0.0.1:4000 photo.jpg
//! cargo run --example file -- get 127.0.0.1:4000 photo.jpg copy.jpg
//! ```

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs, io};

use apus::{Bytes, CallOptions, Endpoint, Payload};

/// First byte of a reply: content follows, or the text of an error.
const DONE: Bytes = Bytes::from_static(&[0]);
const FAILED: Bytes = Bytes::from_static(&[1]);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["serve", address, folder] => serve(address, Path::new(folder)),
        ["put", server, file] => put(server, Path::new(file)),
        ["get", server, name, file] => get(server, name, Path::new(file)),
        _ => {
            Err("usage: file serve ADDRESS FOLDER | put SERVER FILE | get SERVER NAME FILE".into())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("file: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves the files in `folder` until the process ends.
fn serve(address: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::bind(address)?;
    println!("listening on {}", endpoint.local_addr());
    loop {
        let request = endpoint.recv_request()?;
        let client = request.peer_addr();
        let reply = match execute(folder, request.payload()) {
            // Two slices that leave as one message: the content is not copied.
            Ok(content) => Payload::from([DONE, content]),
            Err(error) => Payload::from([FAILED, Bytes::from(error.to_string())]),
        };
        if let Err(error) = request.reply(reply) {
            eprintln!("{client}: {error}");
        }
    }
}

/// Executes a request: `P` or `G`, the length of the name, the name, and the content to put.
fn execute(folder: &Path, request: &Bytes) -> io::Result<Bytes> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidInput);
    let (&[operation, length], rest) = request.split_first_chunk().ok_or_else(malformed)?;
    let (name, content) = rest.split_at_checked(length.into()).ok_or_else(malformed)?;
    let file = file_in(folder, name).ok_or_else(malformed)?;
    match operation {
        b'P' => fs::write(file, content).map(|()| Bytes::new()),
        b'G' => fs::read(file).map(Bytes::from),
        _ => Err(malformed()),
    }
}

/// Returns the path of a file. A client must not leave the folder: a name is one component.
fn file_in(folder: &Path, name: &[u8]) -> Option<PathBuf> {
    let name = Path::new(std::str::from_utf8(name).ok()?);
    (name.file_name()? == name).then(|| folder.join(name))
}

/// Stores a file at the server under its own name.
fn put(server: &str, file: &Path) -> Result<(), Box<dyn Error>> {
    let name = file.file_name().and_then(|name| name.to_str()).ok_or("the file has no name")?;
    let content = Bytes::from(fs::read(file)?);
    let length = content.len();
    let began = Instant::now();
    call(server, b'P', name, content)?;
    println!("put {length} bytes in {:?}", began.elapsed());
    Ok(())
}

/// Gets a file from the server.
fn get(server: &str, name: &str, file: &Path) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let content = call(server, b'G', name, Bytes::new())?;
    println!("got {} bytes in {:?}", content.len(), began.elapsed());
    Ok(fs::write(file, content)?)
}

/// Sends a request, and returns the content of its reply.
fn call(server: &str, operation: u8, name: &str, content: Bytes) -> Result<Bytes, Box<dyn Error>> {
    let head = [&[operation, u8::try_from(name.len())?], name.as_bytes()].concat();
    // A long message needs time in proportion to the network: this suits 2 Mbit/s.
    let options = CallOptions::new().timeout(Duration::from_secs(300)).idempotent(true);
    let request = [Bytes::from(head), content];
    let mut reply = Endpoint::client()?.call_with(server.parse()?, request, options)?;
    let content = reply.split_off(1);
    if reply == DONE { Ok(content) } else { Err(String::from_utf8_lossy(&content).into()) }
}
