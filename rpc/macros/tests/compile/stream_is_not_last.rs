#[allow(dead_code, reason = "it is there to be refused")]
struct Streaming<T>(T);

#[apus_macros::service]
trait Store {
    async fn put(&self, parts: Streaming<u8>, key: String);
}

fn main() {}
