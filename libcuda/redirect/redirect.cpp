// Calls of a CUDA runtime that is part of a program or of one of its libraries (nvcc's default) go to simt's.
//
// NVIDIA's runtime asks the driver for tables that are not published. Where the symbol table still names its
// functions, each of them gets a jump to simt's function of that name in place of its first bytes, before any
// code of the file runs: when the process starts, and, for what dlopen() loads, when the dynamic linker tells
// debuggers of it.
//
// Every process under `simt exec` loads this library first, also those without CUDA: it needs the C library
// only.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

#if defined(__x86_64__)
constexpr size_t jump_bytes = 14;
void write_jump(unsigned char* at, const void* to) {
  const unsigned char code[6] = {0xff, 0x25, 0, 0, 0, 0};  // jmp *0(%rip)
  memcpy(at, code, sizeof code);
  memcpy(at + sizeof code, &to, sizeof to);
}
#elif defined(__aarch64__)
constexpr size_t jump_bytes = 16;
void write_jump(unsigned char* at, const void* to) {
  const uint32_t code[2] = {0x58000050, 0xd61f0200};  // ldr x16, #8; br x16
  memcpy(at, code, sizeof code);
  memcpy(at + sizeof code, &to, sizeof to);
  __builtin___clear_cache(reinterpret_cast<char*>(at), reinterpret_cast<char*>(at + jump_bytes));
}
#else
#error "no jump for this architecture"
#endif

/// False if the system lets nobody write there.
bool replace(void* function, const void* by) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t at = reinterpret_cast<uintptr_t>(function), first = at & ~(page - 1);
  const size_t bytes = at + jump_bytes - first;
  if (mprotect(reinterpret_cast<void*>(first), bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  write_jump(static_cast<unsigned char*>(function), by);
  mprotect(reinterpret_cast<void*>(first), bytes, PROT_READ | PROT_EXEC);
  return true;
}

/// A file in memory; no bytes if there is none.
struct File {
  explicit File(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat facts;
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
      void* mapped = mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, file, 0);
      if (mapped != MAP_FAILED) {
        data = static_cast<const unsigned char*>(mapped);
        bytes = static_cast<size_t>(facts.st_size);
      }
    }
    close(file);
  }
  ~File() {
    if (bytes > 0) munmap(const_cast<unsigned char*>(data), bytes);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// `count` items from `offset` on; nullptr if they are not all in the file.
  template <typename T>
  const T* at(uint64_t offset, uint64_t count = 1) const {
    if (offset > bytes || count > (bytes - offset) / sizeof(T) || offset % alignof(T) != 0) return nullptr;
    return reinterpret_cast<const T*>(data + offset);
  }

  const unsigned char* data = nullptr;
  size_t bytes = 0;
};

/// The functions that a file of the process names.
class Functions {
 public:
  Functions(const File& file, uintptr_t base) : file_(file), base_(base) {
    header_ = file.at<ElfW(Ehdr)>(0);
    if (!header_ || memcmp(header_->e_ident, ELFMAG, SELFMAG) != 0) return;
    if (header_->e_shentsize != sizeof(ElfW(Shdr)) || header_->e_phentsize != sizeof(ElfW(Phdr))) return;
    const auto* sections = file.at<ElfW(Shdr)>(header_->e_shoff, header_->e_shnum);
    segments_ = file.at<ElfW(Phdr)>(header_->e_phoff, header_->e_phnum);
    if (!sections || !segments_) return;
    const unsigned types[2] = {SHT_SYMTAB, SHT_DYNSYM};
    for (const unsigned type : types)
      for (size_t i = 0; i < header_->e_shnum && !symbols_; ++i)
        if (sections[i].sh_type == type && sections[i].sh_link < header_->e_shnum)
          use(sections[i], sections[sections[i].sh_link]);
  }

  /// Calls each(name, code) for every function whose code, as it is in the process, is that of the file.
  template <typename Each>
  void for_each(Each each) const {
    for (size_t i = 0; i < count_; ++i) {
      const ElfW(Sym) & symbol = symbols_[i];
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
      if (symbol.st_name >= names_bytes_) continue;
      const char* name = names_ + symbol.st_name;
      if (strncmp(name, "cuda", 4) != 0 && strncmp(name, "__cuda", 6) != 0) continue;
      // Functions begin at multiples of 16 bytes: none ends before the jump does.
      if (symbol.st_size < jump_bytes && symbol.st_value % 16 != 0) continue;
      if (void* code = in_process(symbol.st_value)) each(name, code);
    }
  }
  bool names(const char* wanted) const {
    bool found = false;
    for_each([&](const char* name, void*) { found = found || strcmp(name, wanted) == 0; });
    return found;
  }
  /// Whether the word is in the table of names, whatever it names.
  bool mention(const char* word) const {
    return names_ && memmem(names_, names_bytes_, word, strlen(word) + 1);
  }

 private:
  void use(const ElfW(Shdr) & table, const ElfW(Shdr) & names) {
    const auto* text = file_.at<char>(names.sh_offset, names.sh_size);
    if (!text || names.sh_size == 0 || text[names.sh_size - 1] != '\0') return;
    symbols_ = file_.at<ElfW(Sym)>(table.sh_offset, table.sh_size / sizeof(ElfW(Sym)));
    if (!symbols_) return;
    count_ = table.sh_size / sizeof(ElfW(Sym));
    names_ = text;
    names_bytes_ = names.sh_size;
  }
  void* in_process(ElfW(Addr) address) const {
    for (size_t i = 0; i < header_->e_phnum; ++i) {
      const ElfW(Phdr) & s = segments_[i];
      if (s.p_type != PT_LOAD || !(s.p_flags & PF_X) || address < s.p_vaddr) continue;
      const uint64_t offset = address - s.p_vaddr;
      if (offset >= s.p_filesz || s.p_filesz - offset < jump_bytes) continue;
      const auto* here = file_.at<unsigned char>(s.p_offset + offset, jump_bytes);
      void* code = reinterpret_cast<void*>(base_ + address);
      return here && memcmp(here, code, jump_bytes) == 0 ? code : nullptr;
    }
    return nullptr;
  }

  const File& file_;
  uintptr_t base_;
  const ElfW(Ehdr) * header_ = nullptr;
  const ElfW(Phdr) * segments_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  size_t count_ = 0, names_bytes_ = 0;
};

/// simt's runtime with the interface of the one that has these functions: of CUDA 11 if it has what CUDA 12
/// removed, of CUDA 12 if it has what CUDA 13 removed.
const char* library_like(const Functions& functions) {
  if (functions.names("cudaBindTexture")) return "libcudart.so.11.0";
  if (functions.names("cudaLaunchCooperativeKernelMultiDevice")) return "libcudart.so.12";
  return "libcudart.so.13";
}

/// The directory of this library, with the final slash.
bool own_directory(char* path, size_t size) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&own_directory), &info) == 0 || !info.dli_fname) return false;
  const char* end = strrchr(info.dli_fname, '/');
  if (!end) return false;
  const size_t bytes = static_cast<size_t>(end + 1 - info.dli_fname);
  if (bytes >= size) return false;
  memcpy(path, info.dli_fname, bytes);
  path[bytes] = '\0';
  return true;
}

void redirect(const char* path, uintptr_t base) {
  char library[PATH_MAX + 32];
  if (!own_directory(library, PATH_MAX) || strncmp(path, library, strlen(library)) == 0) return;
  const File file(*path ? path : "/proc/self/exe");
  const Functions functions(file, base);
  if (!functions.mention("__cudaRegisterFatBinary") || !functions.names("__cudaRegisterFatBinary")) return;
  strcat(library, library_like(functions));
  void* runtime = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!runtime) {
    fprintf(stderr, "simt: %s\n", dlerror());
    return;
  }
  bool refused = false;
  functions.for_each([&](const char* name, void* code) {
    void* ours = dlsym(runtime, name);
    if (ours && !refused) refused = !replace(code, ours);
  });
  if (refused)
    fprintf(stderr,
            "simt: %s has a CUDA runtime, and this system lets nobody change its code; link it with nvcc "
            "-cudart shared\n",
            *path ? path : "the program");
}

struct Objects {
  struct Object {
    uintptr_t base;
    char* path;
  };
  Object* all = nullptr;
  size_t count = 0;

  bool has(const char* path, uintptr_t base) const {
    for (size_t i = 0; i < count; ++i)
      if (all[i].base == base && strcmp(all[i].path, path) == 0) return true;
    return false;
  }
  void add(const char* path, uintptr_t base) {
    auto* more = static_cast<Object*>(realloc(all, (count + 1) * sizeof(Object)));
    char* copy = strdup(path);
    if (!more || !copy) abort();
    all = more;
    all[count++] = {base, copy};
  }
  void clear() {
    while (count > 0) free(all[--count].path);
  }
};

/// Those of the process at the last look, and now.
Objects known, present;

int add_object(dl_phdr_info* info, size_t, void*) {
  present.add(info->dlpi_name ? info->dlpi_name : "", info->dlpi_addr);
  return 0;
}

/// Redirects what has been loaded since the last look.
void look() {
  static bool looking = false;
  if (looking) return;  // simt's runtime is being loaded
  looking = true;
  dl_iterate_phdr(add_object, nullptr);
  for (size_t i = 0; i < present.count; ++i)
    if (!known.has(present.all[i].path, present.all[i].base))
      redirect(present.all[i].path, present.all[i].base);
  const Objects before = known;
  known = present;
  present = before;
  present.clear();
  looking = false;
}

/// In place of the dynamic linker's empty function for debuggers.
void objects_changed() {
  if (_r_debug.r_state == r_debug::RT_CONSISTENT) look();
}

/// Whether the function does nothing, and padding follows it.
bool is_empty(const unsigned char* code) {
#if defined(__x86_64__)
  const unsigned char branch_target[4] = {0xf3, 0x0f, 0x1e, 0xfa};
  if (memcmp(code, branch_target, sizeof branch_target) == 0) code += sizeof branch_target;
  if (*code++ != 0xc3) return false;
  if (*code == 0xcc) return true;
  while (*code == 0x66 || *code == 0x2e) ++code;  // prefixes of a long nop
  return *code == 0x90 || (code[0] == 0x0f && code[1] == 0x1f);
#else
  const uint32_t nop = 0xd503201f, branch_target = 0xd503245f, ret = 0xd65f03c0;
  uint32_t words[3];
  memcpy(words, code, sizeof words);
  const uint32_t* word = words[0] == branch_target ? words + 1 : words;
  return word[0] == ret && (word[1] == nop || word[1] == 0);
#endif
}

/// Before other constructors, also that of the C library, which has the environment for those of simt's
/// runtime.
__attribute__((constructor)) void begin(int, char**, char** environment) {
  if (!environ) environ = environment;
  look();
  const uintptr_t told = _r_debug.r_brk;
  if (told != 0 && told % 16 == 0 && is_empty(reinterpret_cast<const unsigned char*>(told)))
    replace(reinterpret_cast<void*>(told), reinterpret_cast<const void*>(&objects_changed));
}

}  // namespace
