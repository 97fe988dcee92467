#[apus_macros::service]
trait Store {
    async fn put(&mut self, key: String);
}

fn main() {}
