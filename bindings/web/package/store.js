// The tuner's record, kept in IndexedDB under a key of device and model.

const DATABASE = "diptych";
const STORE = "records";

function database() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("the record is in use by another version of the page"));
  });
}

async function ask(mode, act) {
  const open = await database();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = open.transaction(STORE, mode);
      const request = act(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = transaction.onerror = () => reject(transaction.error);
    });
  } finally {
    open.close();
  }
}

/** 64 bits of FNV-1a as two numbers of 32, over the length and every byte. */
function digest(bytes) {
  let [low, high] = [0x811c9dc5 ^ bytes.length, 0x01000193];
  for (const byte of bytes) {
    low = Math.imul(low ^ byte, 0x01000193);
    high = Math.imul(high ^ byte, 0x85ebca6b) ^ (high >>> 13);
  }
  return [low, high].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}

/** The record of a model on a device; empty where none is kept, or nothing can be. */
export async function readRecord(device, bytes) {
  const key = `${device} | ${digest(bytes)}`;
  try {
    return { key, text: (await ask("readonly", (store) => store.get(key))) ?? "" };
  } catch {
    // Private windows and some embedded pages have no IndexedDB: tuning lasts as long as the page then.
    return { key: undefined, text: "" };
  }
}

/** Keeps a record; false if it could not be. */
export async function writeRecord(key, text) {
  if (key === undefined) {
    return false;
  }
  try {
    await ask("readwrite", (store) => store.put(text, key));
    return true;
  } catch {
    return false;
  }
}
