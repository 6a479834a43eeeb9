# Makefile: builds kbgen, the runtime and the kernels; makes simulators of topologies/*.yaml; runs the tests.
#
# `make CC=clang OPT=-O0 SAN=1` builds all of it in a folder of its own below build/, named after the options, and the
# kbgen made there uses the same compiler and flags for what it generates. V=1 shows the commands.

ifeq ($(origin CC),default)
CC := gcc
endif
san_opt := -O1 -g1
OPT ?= $(if $(filter-out 0,$(SAN)),$(san_opt),-O2 -g)
PREFIX ?= $(or $(prefix),/usr/local)
Q := $(if $(V),,@)

# gcc takes more variables for unset when it instruments code.
sanitizers := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
    $(if $(findstring clang,$(CC)),,-Wno-maybe-uninitialized)
san := $(if $(filter-out 0,$(SAN)),$(sanitizers))
space := $() $()
comma := ,
variant = $(subst /,_,$(subst $(space),,$(CC)$(1)))
B := build$(filter-out /gcc-O2-g,/$(call variant,$(OPT))$(if $(san),-san))

# PIE whatever the compiler's default is, so that objects of gcc and clang link with one another.
flags := -std=gnu11 -Wall -Wextra -Wdate-time -fPIE $(OPT) $(san) -ffile-prefix-map=$(CURDIR)=.
common_libs := -lyaml -lgmp
gen_libs := -lsqlite3 -lm
rt_libs := -lboost_context -lz -lm -ldl -lpthread

gen_src := $(wildcard gen/*.c gen/*.re gen/build/*.c gen/search/*.c)
common_src := $(wildcard rt/common/*.c rt/common/*.re)
embed_src := $(wildcard rt/embed/*.c)
rt_src := $(filter-out $(common_src) $(embed_src),$(wildcard rt/*/*.c))
objects = $(patsubst %,$(B)/obj/%.o,$(basename $(1)))
headers := $(wildcard rt/*/*.h rt/*/*.def kernels/*.h)
kernels := $(patsubst %.c,$(B)/%.o,$(wildcard kernels/*.c))
archives := $(B)/libkb.a $(B)/libcommon.a
# What is compiled here has no debug information, which would be half of every simulator, nor tables to unwind its stack;
# what kbgen compiles for users has them. With OPT="-O3 -g" all of it has them, and all symbols, for a profile.
own := $(if $(filter -O2,$(OPT)),-g0 -fno-asynchronous-unwind-tables)
small := $(if $(filter -O2,$(OPT)),$(if $(findstring clang,$(CC)),-Os,-Oz))
units := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/*.c))

# The processors are shared out once, by the outermost make.
ifeq ($(MAKELEVEL)$(findstring j,$(filter -j% --jobserver%,$(MAKEFLAGS))),0)
MAKEFLAGS += -j$(shell nproc)
endif
MAKEFLAGS += --no-print-directory

.PHONY: all units demo check check-quick asan sanitized fuzz experiments bench fidelity valgrind mutants tidy bless tree install uninstall deb clean help FORCE
.DELETE_ON_ERROR:
.PRECIOUS: $(B)/re/%.c

all: $(B)/kbgen $(B)/runtime.o $(B)/image.o $(B)/front.o $(if $(san),,$(B)/prebuilt) ## kbgen and what simulators are linked with (the default)
	@:

demo: ## installs what is missing, builds ref_sip, runs a verified GEMM on its 128 PEs
	@.ci/setup
	@$(MAKE) $(B)/ref_sip
	$(B)/ref_sip run gemm_2d

run_tests = BUILD=$(abspath $(B)) SAN_BUILD=$(abspath build/$(call variant,$(san_opt))-san) CC="$(CC)" \
    SAN=$(if $(san),1) tests/run
check: ## installs what is missing, runs every test, or those of T="NAME ..."
	@.ci/setup check
	@$(MAKE) WERROR=-Werror all units
	@$(run_tests) $(T)

check-quick: ## the same in less than two minutes: the suites that find most in their time
	@.ci/setup check
	@$(MAKE) WERROR=-Werror all units
	@$(run_tests) --quick $(T)

units: $(units) ## the unit tests, not run
	@:

asan: ## the tests with everything under ASan and UBSan, which check runs too
	@$(MAKE) SAN=1 OPT="$(san_opt)" check

sanitized: ## what they need, not run
	@$(MAKE) SAN=1 OPT="$(san_opt)" WERROR=-Werror all units

fuzz: all ## N random machines (100), drawn from SEED (1), against the model in tests/oracle
	@BUILD=$(abspath $(B)) CC="$(CC)" tests/fuzz.t $(or $(N),100) $(or $(SEED),1)

experiments: all ## checks --why on N random machines (100) of SEED (1): changes numbers and runs them again
	@BUILD=$(abspath $(B)) CC="$(CC)" tests/experiments.t $(or $(N),100) $(or $(SEED),1)

bench: all ## the goals of speed, measured, or those of ROW="NAME ..."; PAIRS=5, SHARED=../shared, JSON=FILE, HISTORY=1
	@BUILD=$(abspath $(B)) CC="$(CC)" PAIRS=$(PAIRS) SHARED="$(SHARED)" JSON="$(JSON)" HISTORY=$(HISTORY) tests/bench/bench.py $(ROW)

fidelity: all ## simulated times against measured ones of real chips, or those of SET=FOLDER; ROWS=FILE: other rows
	@BUILD=$(abspath $(B)) ROWS="$(ROWS)" fidelity/fidelity.py $(if $(SET),"$(SET)")

valgrind: ## small machines and the big one under valgrind
	@$(MAKE) T=valgrind check

mutants: ## one-line changes of the code, each of which a suite has to notice: half an hour; N=20 tries 20 of them, T="PART ..." some
	@BUILD=$(abspath $(B)) CC="$(CC)" tests/mutants/mutants.py $(if $(N),--sample $(N)) $(T)

tidy: ## the rules of layout: which room includes which
	@$(MAKE) T=tidy check

bless: ## rewrites expectations from what comes out now: read the diff
	@BLESS=1 $(MAKE) check

clean: ## removes build/
	$(Q)rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^(# )?[a-zA-Z\/-]+:.*## / { sub(/^# /, ""); printf "make %-12s %s\n", $$1, $$2 }' Makefile
	@echo 'options: CC=$(CC) OPT="$(OPT)" SAN=$(SAN) V=$(V), and for install PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)'

# kbgen without its main is an archive, which the unit tests link as well.
$(B)/libgen.a: $(filter-out %/main.o,$(call objects,$(gen_src)))
$(B)/libcommon.a: $(call objects,$(common_src))
$(B)/libkb.a: $(call objects,$(rt_src))
$(B)/lib%.a: $(B)/sources
	$(Q)rm -f $@ && ar rcsD $@ $(filter %.o,$^)

# The passes of kbgen that a simulator runs for --set. They share no name with the runtime but those of renumber.h.
front_end := $(call objects,$(addprefix gen/,renumber.c replace.c better.c load.c fill.c check.c elab.c numbers.c schema.c impl.c words.c))
$(front_end): private local := $(own) $(small)
$(B)/front_end.o: $(front_end)
	$(Q)$(CC) -nostdlib -r -o $@ $^ && objcopy --wildcard --keep-global-symbol='renumber*' $@

# The runtime and the kernels as one object, which takes a linker less time than archives. Static functions have symbols in
# kernels alone: a debugger finds those that a user may look for. gcc aligns long strings, for which nothing asks.
alignment := --set-section-alignment .rodata.str1.8=1
$(B)/models.o: $(archives) $(B)/front_end.o
	$(Q)$(CC) -nostdlib -r $(if $(filter -O2,$(OPT)),-Xlinker --discard-all) -o $@ $(B)/front_end.o -Wl,--whole-archive $(archives) -Wl,--no-whole-archive
	$(Q)objcopy $(alignment) $@
$(B)/runtime.o: $(B)/kernels.o $(B)/models.o
	$(Q)$(CC) -nostdlib -r -o $@ $^

# The same for the image of an instance (rt/embed): of the archives what it uses; its own files come first.
image := $(filter-out %/front.o,$(call objects,$(embed_src)))
$(B)/image.o: $(B)/kernels.o $(image) $(archives) $(B)/front_end.o
	$(Q)$(CC) -nostdlib -r -o $@ $(B)/kernels.o $(B)/front_end.o $(image) -Wl,--start-group $(archives) -Wl,--end-group

# What a library has besides images.
$(B)/front.o: $(B)/obj/rt/embed/front.o
	$(Q)cp $< $@

# The generated code of these machines, compiled; many others have the same. They are entries of kbgen's cache, which it
# also looks for here: an entry that is out of date is not found, since its name is a hash of all that it was made from.
$(B)/prebuilt: $(B)/kbgen $(B)/runtime.o $(wildcard templates/*.in) $(headers)
	$(Q)rm -rf $@ && KBGEN_CACHE=$@ $(B)/kbgen topologies/ref_sip.yaml -o $@/simulator && rm $@/simulator*
	$(Q)touch $@

$(B)/kbgen: $(B)/obj/gen/main.o $(B)/libgen.a $(B)/libcommon.a
	$(Q)$(CC) $(flags) -o $@ $^ $(common_libs) $(gen_libs)
	@echo $@

$(B)/obj/gen/%.o: private local := $(own) -DKB_CC='"$(CC)"' -DKB_OPT='"$(OPT)"' -DKB_SAN='"$(san)"' -DKB_OWN='"$(own)"'
# What every simulator runs and no topology compiles again may take its time to be compiled. Loops become vector
# instructions if nobody asks for errno or traps; values are the same with and without. `dense` rooms do without copies of
# loops and functions; what a run does once, and what only some runs ask for, is small. Structs are cleared by stores of
# vectors: gcc would take string instructions, which take long to begin.
in_rooms = $(foreach room,$(1),$(B)/obj/rt/$(room)/%.o)
in_files = $(foreach file,$(1),$(B)/obj/rt/$(file).o)
models := -Irt -fno-math-errno -fno-trapping-math $(own)
clears := $(if $(findstring clang,$(CC)),,-mmemset-strategy=vector_loop:512:noalign$(comma)libcall:-1:noalign)
fast := $(if $(filter -O2,$(OPT)),-O3 $(clears))
dense := $(if $(fast),$(if $(findstring clang,$(CC)),,-ftree-loop-vectorize -fvect-cost-model=dynamic --param=vect-epilogues-nomask=0 -fno-align-functions -fno-align-jumps -fno-align-labels -fno-align-loops) $(clears))
$(B)/obj/rt/%.o: private local := $(models) $(fast)
$(call in_rooms,base common fastforward launch oplog reference store) $(call in_files,$(addprefix datapass/,elements exec gemm gemm_groups math schedule) $(addprefix device/,composite compute move) machine/mmu machine/route sim/observer): private local := $(models) $(dense)
$(call in_rooms,bringup cli embed host probe races report session timeline why): private local := -Irt $(own) $(small)
$(call in_files,$(addprefix base/,heap human leave output packed progress unnamed) $(addprefix datapass/,blas defect) $(addprefix device/,axes buffer) machine/plan_generator $(addprefix launch/,deadlock host_request launch trap watchdog) \
    $(addprefix common/,command_line completion diag fail key_table manual merge node path_error processors quantity read subcommand yaml) \
    $(addprefix reference/,deferred error expect given recheck) oplog/log oplog/record $(addprefix store/,allocator compact contents places tensor waiting written)): private local := -Irt $(own) $(small)
# This is run for each copy in a memory.
$(call in_files,store/view): private local := $(models) $(fast)
$(call in_files,why/causes why/sums): private local := $(models) $(dense)
$(call in_files,timeline/columns timeline/perfetto timeline/timeline): private local := $(models)
# The front is compiled as a shared library is.
$(B)/obj/rt/embed/front.o: private local := -Irt $(own) -fPIC
# It reads and copies all of an instance.
$(B)/obj/rt/embed/saved.o: private local := -Irt $(own) $(fast)
# -fno-builtin: memory.c defines malloc itself.
$(B)/obj/rt/embed/memory.o: private local := -Irt $(own) -fno-builtin
compile = $(Q)mkdir -p $(@D) && $(CC) $(flags) $(WERROR) $(local) -MMD -MP -c -o $@ $<

$(B)/obj/%.o: %.c $(B)/flags
	$(compile)

$(B)/obj/%.o: $(B)/re/%.c $(B)/flags
	$(compile) -iquote $(dir $*)

$(B)/re/%.c: %.re
	$(Q)mkdir -p $(@D) && re2c -i --no-generation-date -o $@ $<

# No frame of a kernel passes over the guard of its stack. Optimised for size, kernels take half the space; but gcc then
# copies shards by string instructions, which take longer than a call of memcpy. Functions have no copies for constants, and
# call-saved registers hold what outlives a call: both are shorter. As one program, they have one copy of each
# function of their headers, of whose names one is left: a debugger finds each function, if two files call theirs alike the
# second one by its name and a number. What only calls a kernel has no name.
# The sanitizers make most of their compilation, but little of their runs: without optimisation it takes a third.
one_program := $(if $(small),$(if $(san)$(findstring clang,$(CC)),,-flto -flto-partition=one))
of_kernels := -Irt -fstack-clash-protection $(own) $(if $(one_program),-Oz -mstringop-strategy=libcall -fno-tree-sra -fno-gcse -fno-tree-loop-im -fno-ivopts -fno-schedule-insns2 -fno-inline-functions-called-once -fno-ipa-cp -fno-caller-saves -fno-move-loop-invariants,$(small)) \
    $(one_program) $(if $(san),-O0)
name_functions = { known[$$3]; called = $$3 } sub(/_kb_body$$/, "", called) && called in known { print $$3 > "$@.strip" } \
    $$3 ~ /\.(lto_priv|isra)\./ { \
    if ($$2 != "t" || named[$$1]++) print $$3 > "$@.strip"; \
    else { name = $$3; sub(/\.isra\.0$$/, "", name); sub(/\.lto_priv(\.0$$)?/, "", name); if (!taken[name]++) print $$3, name > "$@.rename" } }
unnamed := *_kb_entry *_kb_bench *_kb_params *_kb_kernel *_kb_bench_entry
$(B)/kernels/%.o: private local = $(of_kernels) $(if $(one_program),-frandom-seed=$*)
$(B)/kernels.o: $(kernels)
	$(Q)$(CC) $(if $(one_program),$(flags) $(of_kernels) -flinker-output=nolto-rel -frandom-seed=kernels) -nostdlib -r -o $@ $^
	$(if $(one_program),$(Q)nm -n $@ | awk '$(name_functions)' && \
	    objcopy --wildcard $(foreach name,$(unnamed),--strip-symbol='$(name)') $@ && \
	    objcopy --strip-symbols=$@.strip --redefine-syms=$@.rename $@)
$(B)/kernels/%.o: kernels/%.c $(B)/flags
	$(compile)

# The report page is joined from its parts, compressed and embedded.
dygraphs := /usr/share/javascript/dygraphs
dygraphs_licence := /usr/share/doc/libjs-dygraphs/copyright
page_src := $(wildcard rt/report/page/*.* rt/report/page/sections/*) rt/report/page/assemble
$(B)/report.html: $(page_src) $(dygraphs)/dygraph.min.js $(dygraphs)/dygraph.min.css $(dygraphs_licence)
	$(Q)mkdir -p $(@D) && rt/report/page/assemble run $(dygraphs) $(dygraphs_licence) > $@
$(B)/report.html.gz: $(B)/report.html
	$(Q)gzip -9nc $< > $@
$(B)/obj/rt/report/page.o: $(B)/report.html.gz
$(B)/obj/rt/report/page.o: private local := -Irt $(own) $(small) -DPAGE='"$(B)/report.html.gz"'

# kbgen has the page of a search, joined from the same parts and its own.
$(B)/search.html: $(page_src) $(wildcard rt/report/page/search/*)
	$(Q)mkdir -p $(@D) && rt/report/page/assemble search > $@
$(B)/obj/gen/search/report.o: $(B)/search.html
$(B)/obj/gen/search/report.o: private local := $(own) -DPAGE='"$(B)/search.html"'

# The JSON Schemas of results are compressed and embedded as well.
$(B)/schema.json.gz: rt/report/schema.json
	$(Q)mkdir -p $(@D) && gzip -9nc $< > $@
$(B)/obj/rt/cli/schema.o: $(B)/schema.json.gz
$(B)/obj/rt/cli/schema.o: private local := -Irt $(own) $(small) -DSCHEMA='"$(B)/schema.json.gz"'

# A unit test is one program; of the archives it takes what it uses.
$(B)/unit/%: tests/unit/%.c $(B)/libgen.a $(archives) $(B)/flags
	$(Q)mkdir -p $(@D) && $(CC) $(flags) $(WERROR) -Irt -I. -MMD -MP -MF $@.d -o $@ $< \
	    -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(common_libs) $(gen_libs) $(rt_libs)

# kbgen itself knows whether a simulator is up to date.
# build/NAME: ## the simulator of topologies/NAME.yaml
$(B)/%: topologies/%.yaml all FORCE
	$(Q)$(B)/kbgen $< -o $@
	@echo $@

# These two change when what they hold changes: other flags, names or another compiler build again, as does a header that is
# used where it is installed; and an archive does not keep the object of a source that is gone.
said = { echo '$(CC) $(flags) $(own) $(small) $(fast) $(dense) $(of_kernels) $(name_functions) $(unnamed) $(alignment) $(wildcard /usr/include/valgrind/valgrind.h)'; $(CC) --version; }
$(B)/flags: FORCE
	@mkdir -p $(B); $(said) | cmp -s - $@ || $(said) > $@
$(B)/sources: FORCE
	@mkdir -p $(B); echo $(sort $(gen_src) $(rt_src) $(embed_src) $(common_src)) | cmp -s - $@ || \
	    echo $(sort $(gen_src) $(rt_src) $(embed_src) $(common_src)) > $@

# What is installed is laid out in one tree, which uninstall walks as well.
tree := $(B)/tree
to := $(DESTDIR)$(PREFIX)
tree: all
	$(Q)gen/packaging/stage $(B) $(tree)

install: tree ## into DESTDIR and PREFIX
	$(Q)mkdir -p "$(to)"
	$(Q)(cd $(tree) && find . -type f -print0 | tar --null --verbatim-files-from -T - --mode=u=rwX,go=rX -cf -) | tar -C "$(to)" -xf - --no-same-owner

deb: tree ## the Debian package build/deb/kbgen_VERSION_ARCHITECTURE.deb, by debhelper; MAINTAINER="NAME <ADDRESS>"
	$(Q)gen/packaging/deb $(B) $(tree)
	@ls $(B)/deb/*.deb

uninstall: tree ## removes the same files, and the folders that are kbgen's alone
	$(Q)(cd $(tree) && find . -type f -print0) | (cd "$(to)" && xargs -0 rm -f)
	$(Q)(cd $(tree) && find . -depth -type d -path '*kbgen*' -print0) | (cd "$(to)" && xargs -0 rmdir --ignore-fail-on-non-empty)

-include $(shell find $(B)/obj $(B)/kernels $(B)/unit -name '*.d' 2>/dev/null)
