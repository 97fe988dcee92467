#[apus_macros::service]
trait Store {
    async fn get<T>(&self, key: T) -> String;
}

fn main() {}
