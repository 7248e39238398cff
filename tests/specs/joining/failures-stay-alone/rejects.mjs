await Promise.reject(new Error("rejected while loading"));
